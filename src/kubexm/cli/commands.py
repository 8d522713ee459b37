"""The commands by name; each is loaded when it is called."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from kubexm import __version__
from kubexm.cli import logs

app = App(
    name="kubexm",
    help="Run Kubernetes, and any other automation, on plain Linux hosts.",
    version=__version__,
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    # A flag that is not given is off, and a list is empty: nobody needs to be told.
    default_parameter=Parameter(show_default=lambda value: value or None),
)
hosts = App(name="hosts", help="Look at the hosts of a file.", sort_key=4)
config = App(name="config", help="Look at a cluster file.", sort_key=6)
catalog = App(name="catalog", help="Look at the catalog of components.", sort_key=7)
templates = App(name="templates", help="Look at the templates of files on hosts.", sort_key=7)
bundle = App(name="bundle", help="All that a cluster needs, in one file.", sort_key=7)
task = App(name="task", help="Look at runs, continue them, stop them.", sort_key=5)
create = App(name="create", help="Make something new.", sort_key=0)
delete = App(name="delete", help="Take something away.", sort_key=0)
get = App(name="get", help="Look at clusters.", sort_key=0)
app.command(create)
create.command(
    "kubexm.cli.cluster:create",
    name="cluster",
    help="Make hosts the cluster that a file declares; what is so already is left alone.",
)
app.command(delete)
delete.command(
    "kubexm.cli.cluster:delete",
    name="cluster",
    help="Take away all that was laid on hosts for a cluster; what was there before comes back.",
)
app.command(get)
get.command(
    "kubexm.cli.clusters:list_",
    name="clusters",
    help="All clusters that were made from this machine, and not deleted since.",
)
get.command(
    "kubexm.cli.clusters:show",
    name="cluster",
    help="One cluster: its hosts, how it is reached, and what was done with it last.",
)
app.command(
    "kubexm.cli.clusters:kubeconfig",
    name="kubeconfig",
    help="What lets kubectl and others into a cluster, for its administrator.",
    sort_key=1,
)
app.command(
    "kubexm.cli.health:health",
    name="health",
    help="Ask a cluster how it is: API, endpoint, etcd, nodes, system pods, names, certificates.",
    sort_key=1,
)
app.command("kubexm.cli.pipeline:run", name="run", help="Run a pipeline.", sort_key=1)
app.command(
    "kubexm.cli.pipeline:plan",
    name="plan",
    help="Show what a pipeline, or the creation of a cluster, would do where.",
    sort_key=2,
)
app.command(
    "kubexm.cli.pipeline:graph",
    name="graph",
    help="Draw the execution graph of a pipeline, or of the creation of a cluster.",
    sort_key=3,
)
app.command(
    "kubexm.cli.preflight:preflight",
    name="preflight",
    help="Ask all hosts of a cluster file whether they are fit for it; nothing is changed.",
    sort_key=4,
)
app.command(hosts)
hosts.command(
    "kubexm.cli.hosts:check",
    name="check",
    help="Connect to the hosts of a file: what they are, and what is wrong with each.",
)
app.command(task)
app.command(config)
for name, text in (
    ("init", "Write a first cluster file, with comments; asks for what is not given."),
    ("validate", "Check a cluster file: all that is wrong with it, or what it declares."),
    ("show", "Show a cluster file as it is understood, with --defaults in full."),
    ("explain", "Tell what may be said under a key, such as spec.network.podCIDR."),
    ("schema", "Print the JSON Schema of a cluster file, for editors."),
):
    config.command(f"kubexm.cli.config:{name}", name=name, help=text)
app.command(templates)
for name, text in (
    ("list_", "Every template: what it is for, and where it goes."),
    ("show", "One template: its text, what it may use, and what comes out of it."),
    ("diff", "How templates of yours differ from those of kubexm."),
    ("check", "Check templates of yours: all that is wrong with them, or their names."),
):
    templates.command(f"kubexm.cli.templates:{name}", name=name.rstrip("_"), help=text)
app.command(catalog)
catalog.command("kubexm.cli.catalog:list_", name="list", help="Every component with its versions.")
catalog.command(
    "kubexm.cli.catalog:show",
    name="show",
    help="One version of a component: where it comes from, and what goes with it.",
)
catalog.command(
    "kubexm.cli.catalog:lock",
    name="lock",
    help="Fetch files whose checksums the catalog lacks, and hold them fast in another.",
)
app.command(bundle)
for name, text in (
    ("build", "Fetch all that a cluster needs, and write it into one file."),
    ("check", "Whether a bundle has all that a cluster needs."),
    ("diff", "In what two bundles differ."),
    ("push", "Bring the images of a bundle into a registry."),
    ("show", "What is in a bundle."),
    ("verify", "Read all of a bundle and compare it with its checksums."),
):
    bundle.command(f"kubexm.cli.bundle:{name}", name=name, help=text)
app.command("kubexm.cli.shell:version", name="version", help="Show the version.", sort_key=8)
app.command(
    "kubexm.cli.shell:completion",
    name="completion",
    help="Print a script that completes commands in a shell.",
    sort_key=9,
)
for name, text in (
    ("list", "The latest runs, newest first."),
    ("show", "One run: the result of every unit, and where the time went."),
    ("logs", "What the units of a run said."),
    ("resume", "Go on with a run that was interrupted or cancelled."),
    ("retry", "Open an ended run again: what succeeded is kept, the rest is tried once more."),
    ("cancel", "Stop a run that another process works on; it can be resumed."),
):
    task.command(f"kubexm.cli.task:{name}_", name=name, help=text)


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    log_format: Literal["text", "json"] | None = None,
    log_level: Literal["debug", "info", "warning", "error"] | None = None,
) -> int:
    """Run a command.

    Parameters
    ----------
    log_format
        How log lines look, on standard error; by default text on a terminal, else JSON.
    log_level
        The least important log lines that are written; `info` if only a format is given.

    With either of them a run writes a log in place of its usual view.
    """
    logged = logs.prepare(log_format, log_level)
    command, bound, ignored = app.parse_args(tokens, exit_on_error=False, print_error=False)
    injected = {"logged": logged} if "logged" in ignored else {}
    code = command(*bound.args, **bound.kwargs, **injected)
    return code if isinstance(code, int) else 0

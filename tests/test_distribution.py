"""What `make dist` makes runs on machines that have nothing else of ours."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

import kubexm

ROOT = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("distribution"),
]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with `dist/` made in it, so that the user's own stays as it is."""
    root = tmp_path_factory.mktemp("sources") / "kubexm"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".*", "build", "dist", "__pycache__"))
    (root / ".venv").symlink_to(ROOT / ".venv")
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    pythons = " ".join(sorted({this, "3.12"}))
    # The environment is up to date: the tests run in it.
    make = ["make", "--old-file=.venv/.ready", "dist", f"DIST_PYTHONS={pythons}"]
    # Not the flags of the make that may have started the tests.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = run([*make], cwd=root, env=env)
    assert done.returncode == 0, done.stderr
    return root / "dist"


def run(
    command: list[str | Path], *, env: dict[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)


def bare_environment(home: Path) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "KUBEXM_HOME": str(home / "kubexm"), "PATH": "/usr/bin:/bin"}


def test_wheel_works_in_an_empty_environment(dist: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    bin_dir = tmp_path / "venv" / "bin"
    (wheel,) = dist.glob("*.whl")
    pip: list[str | Path] = [bin_dir / "pip"]
    locked: list[str | Path] = ["--require-hashes", "-r", ROOT / "requirements" / "runtime.txt"]
    for wanted in (locked, ["--no-deps", wheel]):
        installed = run([*pip, "install", *wanted], env=dict(os.environ))
        assert installed.returncode == 0, installed.stderr

    # The lock is all that the wheel says it needs.
    checked = run([*pip, "check"], env=dict(os.environ))
    assert checked.returncode == 0, checked.stdout
    done = run([bin_dir / "kubexm", "version"], env=bare_environment(tmp_path / "home"))

    assert done.returncode == 0, done.stderr
    assert kubexm.__version__ in done.stdout


def test_single_file_works_without_any_installed_package(dist: Path, tmp_path: Path) -> None:
    env = bare_environment(tmp_path / "home")

    # -I and -S: no user packages, no site-packages; all it uses is in the file.
    done = run([sys.executable, "-I", "-S", dist / "kubexm.pyz", "version"], env=env)

    assert done.returncode == 0, done.stderr
    assert kubexm.__version__ in done.stdout
    assert (tmp_path / "home" / ".cache" / "kubexm" / "pyz").is_dir()


def test_single_file_runs_a_pipeline_with_templates(dist: Path, tmp_path: Path) -> None:
    env = bare_environment(tmp_path / "home")
    pipeline = ROOT / "examples" / "website.yaml"

    done = run(
        [sys.executable, "-I", "-S", dist / "kubexm.pyz", "run", "-f", pipeline, "--simulate"],
        env=env,
    )

    assert done.returncode == 0, done.stderr


def test_single_file_refuses_a_python_it_was_not_made_for(dist: Path, tmp_path: Path) -> None:
    # Another Python is one whose extension modules have another name.
    other = tmp_path / "other_python.py"
    other.write_text(
        "import importlib.machinery, runpy, sys\n"
        "importlib.machinery.EXTENSION_SUFFIXES[:] = ['.cpython-399-x86_64-linux-gnu.so']\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    env = bare_environment(tmp_path / "home")

    done = run([sys.executable, "-I", other, dist / "kubexm.pyz", "version"], env=env)

    assert done.returncode == 1
    assert "kubexm.pyz does not run on this Python" in done.stderr
    assert "Traceback" not in done.stderr


def test_sdist_holds_what_a_wheel_is_made_from(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}

    assert {"LICENSE", "pyproject.toml", "src/kubexm/py.typed", "requirements/runtime.txt"} <= files

/* Holds the namespaces of a pod: waits for ever, ends when told, and buries orphans. */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number) { _exit(number == SIGINT || number == SIGTERM ? 0 : 1); }

static void bury(int number) {
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void) {
    struct sigaction ending = {.sa_handler = end};
    struct sigaction burying = {.sa_handler = bury, .sa_flags = SA_NOCLDSTOP};

    if (sigaction(SIGINT, &ending, NULL) < 0 || sigaction(SIGTERM, &ending, NULL) < 0 ||
        sigaction(SIGCHLD, &burying, NULL) < 0)
        return 1;
    for (;;)
        pause();
}

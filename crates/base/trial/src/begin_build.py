# Follows the text of infradev_probe/privileges.py: what a build begins with, as a rank does, before it becomes the command.
import resource
import sys


def begin(uid: str, largest: int, command: list[str]) -> None:
    """Bound what it writes into one file, give up what it must not have, run the command."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if uid == "-":
        forbid_new_privileges()
    else:
        become_rank(int(uid), int(uid))
    forbid_calls()
    os.umask(0o022)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


begin(sys.argv[1], int(sys.argv[2]), sys.argv[3:])

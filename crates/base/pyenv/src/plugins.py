# Run by plugins.rs: prints which of its arguments pytest would find as plugins nowhere.
import importlib.metadata
import importlib.util
import json
import sys

entries = importlib.metadata.entry_points(group="pytest11")
named = {entry.name for entry in entries} | {entry.value.split(":")[0].split(".")[0] for entry in entries}


def there(name):
    if name.startswith("no:") or name in named or name.replace("-", "_") in named:
        return True
    for module in (name.split(".")[0], "_pytest." + name):
        try:
            if importlib.util.find_spec(module) is not None:
                return True
        except (ImportError, ValueError, AttributeError):
            pass
    return False


print(json.dumps([name for name in sys.argv[1:] if not there(name)]))

import importlib.metadata
import json
import os
import platform
import site
import sys
import sysconfig


def version_of(info):
    text = f"{info.major}.{info.minor}.{info.micro}"
    return text if info.releaselevel == "final" else f"{text}{info.releaselevel[0]}{info.serial}"


distributions = {}
for found in importlib.metadata.distributions():
    name = found.metadata["Name"]
    if name:
        distributions.setdefault(name, found.version)  # the first on sys.path is the one imported

print(
    json.dumps(
        {
            "version": platform.python_version(),
            "build": sys.version,
            "platform": sysconfig.get_platform(),
            "abi": sysconfig.get_config_var("SOABI") or "",
            "libc": platform.libc_ver()[0],
            "executable": sys.executable,
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "site": sysconfig.get_path("purelib"),
            "site_folders": [p for p in site.getsitepackages() if os.path.isdir(p)],
            "distributions": distributions,
            "markers": {
                "implementation_name": sys.implementation.name,
                "implementation_version": version_of(sys.implementation.version),
                "os_name": os.name,
                "platform_machine": platform.machine(),
                "platform_python_implementation": platform.python_implementation(),
                "platform_release": platform.release(),
                "platform_system": platform.system(),
                "platform_version": platform.version(),
                "python_full_version": platform.python_version(),
                "python_version": ".".join(platform.python_version_tuple()[:2]),
                "sys_platform": sys.platform,
            },
        }
    )
)

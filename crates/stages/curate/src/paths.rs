//! What a path of a history is, by its name alone.

use infradev_patch::looks_like_test;

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathClass {
    /// Python that is neither of the others.
    Source,
    /// Python of tests.
    Test,
    /// Another project's code.
    Vendored,
    /// Written by a program: golden values, protocol stubs, locks.
    Generated,
    /// Texts for people.
    Docs,
    /// C, C++, CUDA and what is compiled.
    Native,
    /// Says which packages are needed.
    Dependency,
    /// Starts things: shell scripts, continuous integration.
    Script,
    /// All else: data, configuration, images.
    Data,
}

const VENDORED: &[&str] =
    &["third_party", "third-party", "thirdparty", "3rdparty", "vendor", "vendored", "external", "submodules"];
const NATIVE: &[&str] = &["c", "cc", "cpp", "cxx", "cu", "cuh", "h", "hpp", "hip", "pyx", "pxd", "rs"];
const DEPENDENCIES: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    "environment.yml",
    "environment.yaml",
    "conda.yaml",
];
const LOCKS: &[&str] = &["uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock", "pixi.lock", "pylock.toml"];

/// A file of this name pins the packages that were resolved, and is not another project's.
pub fn is_lock(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    LOCKS.contains(&name) && classify(path) == PathClass::Dependency
}

/// The class of a path.
pub fn classify(path: &str) -> PathClass {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let within = |known: &[&str]| folders.split('/').any(|folder| known.contains(&folder));
    if within(VENDORED) {
        return PathClass::Vendored;
    }
    if name.ends_with("_pb2.py") || name.ends_with("_pb2_grpc.py") || name.starts_with("golden_values") {
        return PathClass::Generated;
    }
    let dependencies = DEPENDENCIES.contains(&name)
        || LOCKS.contains(&name)
        || name.starts_with("requirements") && extension == "txt"
        || within(&["requirements"]) && extension == "txt"
        || name.starts_with("Dockerfile");
    if dependencies {
        return PathClass::Dependency;
    }
    if extension == "py" && looks_like_test(path.as_bytes()) {
        return PathClass::Test;
    }
    if matches!(extension, "md" | "rst" | "txt") || path.starts_with("docs/") || within(&["docs", "doc"]) {
        return PathClass::Docs;
    }
    if NATIVE.contains(&extension) || name == "CMakeLists.txt" {
        return PathClass::Native;
    }
    if path.starts_with(".github/") || path.starts_with(".gitlab/") || matches!(extension, "sh" | "bash") {
        return PathClass::Script;
    }
    match extension {
        "py" => PathClass::Source,
        _ => PathClass::Data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fall_into_their_classes() {
        for (path, class) in [
            ("megatron/core/a.py", PathClass::Source),
            ("tests/unit_tests/test_a.py", PathClass::Test),
            ("tests/functional_tests/x/golden_values_dev_dgx_h100.json", PathClass::Generated),
            ("third_party/x/a.py", PathClass::Vendored),
            ("a/x_pb2.py", PathClass::Generated),
            ("docs/source/conf.py", PathClass::Docs),
            ("README.md", PathClass::Docs),
            ("megatron/legacy/fused_kernels/a.cu", PathClass::Native),
            ("requirements-npu.txt", PathClass::Dependency),
            ("docker/Dockerfile.ci", PathClass::Dependency),
            ("uv.lock", PathClass::Dependency),
            (".github/workflows/x.py", PathClass::Script),
            ("examples/run.sh", PathClass::Script),
            ("tests/x.yaml", PathClass::Data),
        ] {
            assert_eq!(classify(path), class, "{path}");
        }
    }

    #[test]
    fn locks_of_resolved_packages_are_told_from_what_asks_for_packages() {
        for (path, is) in [
            ("uv.lock", true),
            ("docker/common/uv.lock", true),
            ("third_party/x/uv.lock", false),
            ("requirements.txt", false),
            ("pyproject.toml", false),
        ] {
            assert_eq!(is_lock(path), is, "{path}");
        }
    }
}

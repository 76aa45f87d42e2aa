//! Which paths belong to the tests.

/// What a path of a tree is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathClass {
    /// The code under test, and all that is neither of the others.
    Source,
    /// A test, or a file that steers tests from among them (`conftest.py`).
    Test,
    /// A file outside the test trees that configures the test runner, and often the package too: `pyproject.toml`,
    /// `setup.cfg`, `tox.ini`, `pytest.ini` and their kin.
    RunnerConfig,
}

/// Names from which pytest reads its configuration (pytest's reference, "Configuration file formats").
const RUNNER_CONFIG: [&[u8]; 7] = [
    b"pytest.ini",
    b".pytest.ini",
    b"pytest.toml",
    b".pytest.toml",
    b"tox.ini",
    b"setup.cfg",
    b"pyproject.toml",
];

/// The test trees of a task, by which paths are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestPaths {
    roots: Vec<Vec<u8>>,
}

impl TestPaths {
    /// Test trees by path relative to the tree, such as `tests` or `pkg/tests/`; the root of the tree itself can't be one
    /// and is passed over.
    pub fn new<R: AsRef<[u8]>>(roots: &[R]) -> TestPaths {
        let roots = roots.iter().map(|root| {
            let root = root.as_ref();
            let root = root.strip_prefix(b"./").unwrap_or(root);
            let end = root.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
            root[..end].to_vec()
        });
        TestPaths { roots: roots.filter(|root| !root.is_empty() && root != b".").collect() }
    }

    /// The class of a path relative to the tree.
    pub fn classify(&self, path: &[u8]) -> PathClass {
        let below = |root: &Vec<u8>| {
            path.strip_prefix(root.as_slice()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let name = file_name(path);
        if name == b"conftest.py" || self.roots.iter().any(below) {
            PathClass::Test
        } else if RUNNER_CONFIG.contains(&name) {
            PathClass::RunnerConfig
        } else {
            PathClass::Source
        }
    }
}

/// The path lies below one of these test trees, or is a `conftest.py` anywhere.
pub fn is_test_path<R: AsRef<[u8]>>(path: &[u8], roots: &[R]) -> bool {
    TestPaths::new(roots).classify(path) == PathClass::Test
}

/// The path looks like a test by the usual names: `test_*.py`, `*_test.py`, `conftest.py`, or anything below a folder
/// `tests` or `test`. For splitting an upstream change whose test trees nobody has named.
pub fn looks_like_test(path: &[u8]) -> bool {
    let name = file_name(path);
    let folders = &path[..path.len() - name.len()];
    name == b"conftest.py"
        || is_collected(name)
        || folders.split(|&b| b == b'/').any(|folder| folder == b"tests" || folder == b"test")
}

/// pytest collects a file of this name where no setting of the project says otherwise (its `python_files`).
pub fn is_collected(path: &[u8]) -> bool {
    let name = file_name(path);
    name.starts_with(b"test_") && name.ends_with(b".py") || name.ends_with(b"_test.py")
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fall_into_their_classes() {
        let tests = TestPaths::new(&["tests/", "./pkg/checks"]);
        for (path, class) in [
            ("tests/test_x.py", PathClass::Test),
            ("tests/data/pyproject.toml", PathClass::Test),
            ("tests_extra/x.py", PathClass::Source),
            ("pkg/checks/a.py", PathClass::Test),
            ("pkg/conftest.py", PathClass::Test),
            ("pyproject.toml", PathClass::RunnerConfig),
            ("pkg/setup.cfg", PathClass::RunnerConfig),
            ("pkg/model.py", PathClass::Source),
        ] {
            assert_eq!(tests.classify(path.as_bytes()), class, "{path}");
        }
    }

    #[test]
    fn the_root_of_the_tree_is_not_taken_for_a_test_tree() {
        assert_eq!(TestPaths::new(&["."]).classify(b"pkg/a.py"), PathClass::Source);
    }

    #[test]
    fn pytest_collects_files_by_their_own_name_and_not_by_their_folder() {
        for (path, collected) in [
            ("a/test_b.py", true),
            ("b_test.py", true),
            ("tests/conftest.py", false),
            ("tests/a.py", false),
            ("test_a.txt", false),
        ] {
            assert_eq!(is_collected(path.as_bytes()), collected, "{path}");
        }
    }

    #[test]
    fn usual_names_of_tests_are_known_and_lookalikes_are_not() {
        for path in ["tests/unit/data.json", "a/test_b.py", "a/b_test.py", "conftest.py", "x/test/y.c"] {
            assert!(looks_like_test(path.as_bytes()), "{path}");
        }
        for path in ["latest.py", "contest.py", "testing/a.py", "test.py", "a/tests.md", "test_data.json"] {
            assert!(!looks_like_test(path.as_bytes()), "{path}");
        }
    }
}

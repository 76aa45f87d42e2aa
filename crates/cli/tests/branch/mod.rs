//! A repository with a branch, as a maintainer has it, and a Python with pytest in it.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::PathBuf;

use crate::ground::{Ground, Said};

/// The repository lies in `shop`: a package of that name below `src`, its tests in `tests`.
pub struct Branch {
    pub ground: Ground,
    pub python: PathBuf,
}

impl Branch {
    /// The main branch has these files; the other one is checked out, without a commit yet.
    pub fn of(files: &[(&str, &str)]) -> Branch {
        let ground = Ground::new();
        // Builds the environment, once for all tests of this checkout.
        ground.infradev(&["probe", "list", "pack/tasks/triple"]).exits(0);
        let environments = std::fs::read_dir(ground.path().join("home/envs")).unwrap().flatten();
        // Other tests have environments there without pytest.
        let mut programs = environments.map(|entry| entry.path().join("bin"));
        let python = programs.find(|bin| bin.join("pytest").is_file()).unwrap().join("python");
        let branch = Branch { ground, python };
        branch.write("src/shop/__init__.py", "");
        for (path, text) in files {
            branch.write(path, text);
        }
        branch.write("tests/test_old.py", "def test_old():\n    pass\n");
        branch.git(&["init", "-q", "-b", "main"]);
        branch.commit("base");
        branch.git(&["checkout", "-q", "-b", "rebate"]);
        branch
    }

    pub fn write(&self, path: &str, text: &str) {
        self.ground.write(&format!("shop/{path}"), text);
    }

    pub fn git(&self, args: &[&str]) {
        let folder = self.ground.path().join("shop");
        let place: Vec<&str> = ["-C", folder.to_str().unwrap()].iter().chain(args).copied().collect();
        self.ground.git(&place);
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    pub fn gaps(&self, args: &[&str]) -> Said {
        let python = self.python.to_str().unwrap();
        let mine = ["--quiet", "probe-gaps", "--repo", "shop", "--python", python];
        let all: Vec<&str> = mine.iter().chain(args).copied().collect();
        self.ground.infradev(&all)
    }
}

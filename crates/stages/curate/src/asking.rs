//! What the tests of a commit ask for: ranks, devices, and what they look at.

use std::collections::{BTreeSet, HashSet};

use infradev_model::{Checks, Device, Evidence, Needs};
use infradev_pycode::{Ask, Module};

/// What the tests of one commit ask for.
#[derive(Default)]
pub struct Asking {
    found: Vec<(Ask, Evidence)>,
}

impl Asking {
    /// Reads a test file of which these functions changed.
    pub fn read(&mut self, path: &str, module: &Module, changed: &HashSet<String>) {
        for asked in module.asks(changed) {
            self.found.push((asked.ask, Evidence { what: asked.text, place: path.to_owned() }));
        }
    }

    /// Reads `torchrun --nproc_per_node=4` in a script or a docstring.
    pub fn launches(&mut self, path: &str, text: &str) {
        for words in ["nproc_per_node", "nproc-per-node"] {
            for rest in text.split(words).skip(1) {
                let rest = rest.trim_start_matches(['=', ' ', '"', '\'']);
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                if let Ok(ranks @ 2..=64) = digits.parse::<u32>() {
                    let evidence = Evidence { what: format!("{words}={ranks}"), place: path.to_owned() };
                    self.found.push((Ask::Ranks(ranks), evidence));
                }
            }
        }
    }

    fn few(&self, wanted: impl Fn(&Ask) -> bool) -> Vec<Evidence> {
        let mut shown: Vec<Evidence> = Vec::new();
        for (_, evidence) in self.found.iter().filter(|(ask, _)| wanted(ask)) {
            if shown.len() < 3 && !shown.contains(evidence) {
                shown.push(evidence.clone());
            }
        }
        shown
    }

    /// What they need to run.
    pub fn needs(&self) -> Needs {
        let sizes: BTreeSet<u32> = self
            .found
            .iter()
            .filter_map(|(ask, _)| match ask {
                Ask::Ranks(size) | Ask::Gpus(size) => Some(*size),
                _ => None,
            })
            .collect();
        let world = sizes.last().copied().unwrap_or(1);
        let is = |wanted: Ask| self.found.iter().any(|(ask, _)| *ask == wanted);
        let on_gpus = |ask: &Ask| matches!(ask, Ask::Cuda | Ask::Gpus(_));
        let cuda = self.found.iter().any(|(ask, _)| on_gpus(ask));
        let largest = |ask: &Ask| matches!(ask, Ask::Ranks(size) | Ask::Gpus(size) if *size == world);
        let mut evidence = self.few(largest);
        evidence.extend(self.few(|ask| *ask == Ask::ProcessGroup).into_iter().take(1));
        evidence.extend(self.few(on_gpus).into_iter().take(1));
        Needs {
            world,
            worlds: sizes.into_iter().collect(),
            distributed: is(Ask::ProcessGroup),
            gpus: if cuda { world } else { 0 },
            device: if cuda { Device::Cuda } else { Device::Cpu },
            evidence,
        }
    }

    /// What they look at.
    pub fn checks(&self) -> Checks {
        Checks {
            numbers: self.few(|ask| *ask == Ask::Numbers),
            resources: self.few(|ask| *ask == Ask::Resources),
        }
    }
}

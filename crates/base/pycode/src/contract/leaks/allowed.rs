//! Findings that the contract allows, and what it allows in vain.

use infradev_model::{Allowance, AllowedPassage, Contract, ContractFinding, ContractRule};

use super::prose;
use super::reading::readings;
use super::spelling::{self, Role, Text};

/// Findings, and what the contract lets stand instead of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Those that are left, and one for each `[[allow]]` that does not count.
    pub findings: Vec<ContractFinding>,
    /// What is allowed, once for each place where it stands.
    pub allowed: Vec<AllowedPassage>,
}

/// What an `[[allow]]` does to the findings.
enum Effect {
    /// It holds none of them.
    Nothing,
    /// It holds this many passages, each another.
    Several(usize),
    /// The one passage that it holds, in its parts.
    Allows(Vec<String>),
}

/// Findings without those that the contract allows, and one for each `[[allow]]` that allows none of them, or more than one passage.
pub fn without_allowed(findings: Vec<ContractFinding>, contract: &Contract, contract_text: &str) -> Sifted {
    let effects: Vec<Effect> = contract.allowed.iter().map(|entry| effect(entry, &findings)).collect();
    let mut sifted = Sifted::default();
    for finding in findings {
        let allowing = contract.allowed.iter().zip(&effects).find(|(entry, effect)| {
            matches!(effect, Effect::Allows(parts) if passage(entry.rule, &finding).as_ref() == Some(parts))
        });
        match allowing {
            Some((entry, _)) => sifted.allowed.push(AllowedPassage {
                file: finding.file,
                line: finding.line,
                rule: entry.rule,
                text: finding.passage.unwrap_or_default(),
                why: entry.why.trim().to_owned(),
            }),
            None => sifted.findings.push(finding),
        }
    }
    for (index, (entry, effect)) in contract.allowed.iter().zip(&effects).enumerate() {
        let (rule, text) = (entry.rule.name(), entry.shortened());
        let what = match effect {
            Effect::Allows(_) => continue,
            Effect::Nothing => {
                format!("nothing of the rule {rule} is left to allow in `{text}`: take this [[allow]] out")
            }
            Effect::Several(count) => format!(
                "{count} passages of the rule {rule} stand in `{text}`, and an [[allow]] is for one: give each its own, or none"
            ),
        };
        let line = Allowance::line_in(contract_text, index).unwrap_or(1) as u32;
        sifted.findings.push(ContractFinding::new("contract.toml", line, ContractRule::Allowance, what));
    }
    sifted.findings.sort();
    sifted.allowed.sort();
    sifted
}

/// The passage that is the text itself; if there is none, the only one that stands in it, however either is spelled.
fn effect(entry: &Allowance, findings: &[ContractFinding]) -> Effect {
    let texts: Vec<Vec<String>> =
        readings(&entry.text).iter().map(|reading| parts(entry.rule, &reading.text)).collect();
    let holds = |passage: &Vec<String>| {
        texts.iter().any(|text| text.windows(passage.len()).any(|window| window == passage.as_slice()))
    };
    let mut held: Vec<Vec<String>> =
        findings.iter().filter_map(|finding| passage(entry.rule, finding)).filter(holds).collect();
    held.sort();
    held.dedup();
    if let Some(itself) = held.iter().find(|passage| texts.contains(passage)) {
        return Effect::Allows(itself.clone());
    }
    match held.len() {
        0 => Effect::Nothing,
        1 => Effect::Allows(held.remove(0)),
        count => Effect::Several(count),
    }
}

/// What a finding of this rule names, in its parts.
fn passage(rule: ContractRule, finding: &ContractFinding) -> Option<Vec<String>> {
    let passage = finding.passage.as_deref().filter(|_| finding.rule == rule)?;
    Some(parts(rule, passage)).filter(|parts| !parts.is_empty())
}

/// A text without its space and marks.
fn parts(rule: ContractRule, text: &str) -> Vec<String> {
    if rule == ContractRule::Prose {
        return prose::words(text).into_iter().map(|word| word.text).collect();
    }
    let tokens = spelling::tokens(text, Text::Prose).into_iter();
    tokens.filter(|token| token.role != Role::Marker).map(|token| token.text).collect()
}

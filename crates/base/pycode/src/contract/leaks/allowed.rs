//! Findings that the contract allows, and what it allows in vain.

use infradev_model::{Allowance, Contract, ContractFinding, ContractRule};

use super::prose;
use super::spelling::{self, Role, Text};

/// Findings without those that the contract allows, and one for each `[[allow]]` that allows none of them.
pub fn without_allowed(
    findings: Vec<ContractFinding>,
    contract: &Contract,
    contract_text: &str,
) -> Vec<ContractFinding> {
    let mut is_used = vec![false; contract.allowed.len()];
    let mut left: Vec<ContractFinding> = findings
        .into_iter()
        .filter(|finding| {
            let allowing =
                contract.allowed.iter().zip(&mut is_used).filter(|(entry, _)| allows(entry, finding));
            allowing.map(|(_, is_used)| *is_used = true).count() == 0
        })
        .collect();
    for (index, entry) in contract.allowed.iter().enumerate().filter(|(index, _)| !is_used[*index]) {
        let line = Allowance::line_in(contract_text, index).unwrap_or(1) as u32;
        let what = format!(
            "nothing of the rule {} is left to allow in `{}`: take this [[allow]] out",
            entry.rule.name(),
            entry.text.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        left.push(ContractFinding::new("contract.toml", line, ContractRule::Allowance, what));
    }
    left.sort();
    left
}

/// Whether what was found stands in what is allowed, however either is spelled.
fn allows(entry: &Allowance, finding: &ContractFinding) -> bool {
    let Some(passage) = finding.passage.as_deref().filter(|_| finding.rule == entry.rule) else {
        return false;
    };
    let parts: fn(&str) -> Vec<String> = match entry.rule {
        ContractRule::Prose => |text| prose::words(text).into_iter().map(|word| word.text).collect(),
        _ => |text| {
            let tokens = spelling::tokens(text, Text::Prose).into_iter();
            tokens.filter(|token| token.role != Role::Marker).map(|token| token.text).collect()
        },
    };
    let (allowed, passage) = (parts(&entry.text), parts(passage));
    !passage.is_empty() && allowed.windows(passage.len()).any(|window| window == passage)
}

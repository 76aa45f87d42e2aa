//! What a `contract.toml` gives away: as the file has it, and as the prompt shows it.

use infradev_model::{Contract, ContractFinding, ContractRule};

use super::super::outline::words_of;
use super::Leaks;

impl Leaks {
    /// The same in a `contract.toml`, where a signature is code: plain words of golden's functions are found there, too.
    /// Its values are read as the prompt shows them, too.
    pub fn find_in_contract(&self, file: &str, contract: &Contract, text: &str) -> Vec<ContractFinding> {
        let text = Contract::without_allowances(text);
        let mut findings = self.find(file, &text);
        let shown = self.as_shown(file, contract, &text, &findings);
        findings.extend(shown);
        for listed in &contract.names {
            let signature = listed.signature.as_deref().unwrap_or_default();
            for word in words_of(signature).into_iter().filter(|word| self.locals.contains(*word)) {
                let Some(golden) = self.names.get(word) else { continue };
                let from = listed.line_in(&text).unwrap_or(1);
                let is_it =
                    |line: &str| line.trim_start().starts_with("signature") && words_of(line).contains(word);
                let line = text.lines().skip(from).position(is_it).map_or(from, |at| from + at + 1);
                let is = "a local name of golden's stands in a signature";
                let rule = ContractRule::PrivateName;
                findings.push(ContractFinding::leak(file, line as u32, rule, is, word, golden.clone()));
            }
        }
        findings.sort();
        // A compound word is found by either way.
        findings.dedup_by(|one, other| {
            let key = |finding: &ContractFinding| (finding.line, finding.rule, finding.passage.clone());
            key(one) == key(other)
        });
        findings
    }

    /// What stands in the values as the prompt shows them, without what is found in the file on their lines.
    fn as_shown(
        &self,
        file: &str,
        contract: &Contract,
        text: &str,
        found: &[ContractFinding],
    ) -> Vec<ContractFinding> {
        let shown = contract.shown();
        let mut findings = Vec::new();
        for hit in self.hits(&shown.text) {
            let lines: Vec<_> = shown.values_at(&hit.range).map(|value| value.lines_in(text)).collect();
            let line = lines.first().map_or(1, |lines| *lines.start());
            let is_it = |finding: &ContractFinding| {
                finding.rule == hit.rule
                    && finding.golden.as_ref() == Some(&hit.golden)
                    && lines.iter().any(|lines| lines.contains(&finding.line))
            };
            if !found.iter().any(is_it) {
                findings.push(hit.finding(file, line));
            }
        }
        findings
    }
}

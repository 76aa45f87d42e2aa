//! What models cost: a table with dates and sources, and the cost of an attempt by it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{self, FormatError};
use crate::submission::{Metered, Tokens};

/// The schema version of a price table that this program reads.
pub const PRICES_SCHEMA: u32 = 1;

/// The table that is shipped, as a file: name and bytes.
pub const SHIPPED_PRICES: (&str, &[u8]) = ("prices.toml", include_bytes!("../../../../prices.toml"));

/// Prices of models. The first entry that names a model counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// Version of this file's format.
    pub schema: u32,
    /// The entries.
    #[serde(default, rename = "price")]
    pub prices: Vec<Price>,
}

/// What some models cost, in US dollars for a million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Names of models, as an endpoint knows them.
    pub models: Vec<String>,
    /// The host of the endpoint that asks this price; any where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The day of which the prices are, `2026-05-31`.
    pub date: String,
    /// Where they were read.
    pub source: String,
    /// Tokens of prompts.
    pub input: f64,
    /// Of them, those read from a cache; as `input` where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Of them, those written into a cache; as `input` where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Tokens of answers, reasoning included.
    pub output: f64,
}

/// By which prices an attempt's cost is reckoned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PricedBy {
    /// The day of which they are.
    pub date: String,
    /// Where they were read.
    pub source: String,
}

/// What an attempt cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// US dollars, by the proxy's count of tokens.
    pub usd: f64,
    /// The day of which the prices are.
    pub prices: String,
    /// Where they were read.
    pub source: String,
    /// Whether tokens are missing in it, of requests that told none or not all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

impl PriceTable {
    /// Parses and checks a table.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<PriceTable, FormatError> {
        let table: PriceTable = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        table.check(file).map_err(|error| error.locate(text))?;
        Ok(table)
    }

    fn check(&self, file: &str) -> Result<(), FormatError> {
        format::schema(file, self.schema, PRICES_SCHEMA)?;
        for (index, price) in self.prices.iter().enumerate() {
            let refuse = |key: &str, what: &str| {
                Err(FormatError::new(file, Some(&format!("price[{index}].{key}")), what))
            };
            if price.models.is_empty() {
                return refuse("models", "names a model");
            }
            if !is_date(&price.date) {
                return refuse("date", "is a day, as 2026-05-31");
            }
            if price.source.trim().is_empty() {
                return refuse("source", "says where the prices were read");
            }
            let rates = [
                ("input", Some(price.input)),
                ("cached", price.cached),
                ("cache_write", price.cache_write),
                ("output", Some(price.output)),
            ];
            for (key, rate) in rates {
                if rate.is_some_and(|rate| !rate.is_finite() || rate < 0.0) {
                    return refuse(key, "is dollars for a million tokens, 0 or more");
                }
            }
        }
        Ok(())
    }

    /// The price that a host asks for a model; `None` where the table does not know it.
    pub fn price(&self, model: &str, host: Option<&str>) -> Option<&Price> {
        let of = |price: &&Price| {
            let named = price.models.iter().any(|known| known == model);
            named && (price.host.is_none() || price.host.as_deref() == host)
        };
        self.prices.iter().find(of)
    }
}

impl Price {
    /// Its day and its source.
    pub fn origin(&self) -> PricedBy {
        PricedBy { date: self.date.clone(), source: self.source.clone() }
    }

    /// What was counted costs this much.
    pub fn cost(&self, metered: &Metered) -> Cost {
        let (prices, source) = (self.date.clone(), self.source.clone());
        Cost { usd: self.usd(&metered.tokens), prices, source, at_least: metered.unmetered > 0 }
    }

    /// US dollars for tokens.
    pub fn usd(&self, tokens: &Tokens) -> f64 {
        let Tokens { input, cached, written, output, .. } = *tokens;
        let plain = input.saturating_sub(cached).saturating_sub(written);
        let parts = [
            (plain, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (output, self.output),
        ];
        parts.iter().map(|(count, rate)| *count as f64 * rate).sum::<f64>() / 1e6
    }
}

fn is_date(text: &str) -> bool {
    let digits = |c: char| c.is_ascii_digit();
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let within =
        |at: usize, most: u32| parts[at].parse().is_ok_and(|number: u32| (1..=most).contains(&number));
    let plain = lengths == [4, 2, 2] && parts.iter().all(|part| part.chars().all(digits));
    plain && within(1, 12) && within(2, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_counts_cached_written_and_other_tokens_each_at_its_rate() {
        let table = PriceTable::parse(SHIPPED_PRICES.0, SHIPPED_PRICES.1).unwrap();
        let price = table.price("claude-sonnet-4-5", Some("api.anthropic.com")).unwrap();
        let tokens =
            Tokens { input: 1_000_000, cached: 500_000, written: 100_000, output: 10_000, reasoning: 0 };
        let mut metered = Metered { tokens, ..Metered::default() };
        let cost = price.cost(&metered);
        assert!((cost.usd - (0.4 * 3.0 + 0.5 * 0.3 + 0.1 * 3.75 + 0.01 * 15.0)).abs() < 1e-9, "{cost:?}");
        assert!(!cost.at_least);
        metered.unmetered = 1;
        assert!(price.cost(&metered).at_least);
    }

    #[test]
    fn each_shipped_price_says_its_day_its_host_and_where_it_was_read() {
        let table = PriceTable::parse(SHIPPED_PRICES.0, SHIPPED_PRICES.1).unwrap();
        assert!(!table.prices.is_empty());
        for price in &table.prices {
            assert!(price.date.starts_with("20") && price.host.is_some(), "{price:?}");
            assert!(price.source.starts_with("https://"), "{price:?}");
        }
    }

    #[test]
    fn a_model_that_is_unknown_or_served_elsewhere_has_no_price() {
        let table = PriceTable::parse(SHIPPED_PRICES.0, SHIPPED_PRICES.1).unwrap();
        assert_eq!(table.price("claude-nothing", Some("api.anthropic.com")), None);
        assert_eq!(table.price("claude-sonnet-4-5", Some("127.0.0.1")), None);
    }

    #[test]
    fn what_is_wrong_in_a_table_is_named_with_its_key() {
        let good = "schema = 1\n[[price]]\nmodels = [\"m\"]\ndate = \"2026-05-31\"\nsource = \"s\"\ninput = 1\noutput = 2\n";
        PriceTable::parse("p.toml", good.as_bytes()).unwrap();
        let refused = |from: &str, to: &str| {
            PriceTable::parse("p.toml", good.replace(from, to).as_bytes()).unwrap_err().to_string()
        };
        assert!(refused("2026-05-31", "May 2026").contains("`price[0].date`: is a day, as 2026-05-31"));
        for day in ["2026-5-31", "2026-13-01", "2026-00-10", "2026-01-32", "2026-01-1x"] {
            assert!(refused("2026-05-31", day).contains("`price[0].date`"), "{day}");
        }
        assert!(refused("\"s\"", "\" \"").contains("`price[0].source`: says where the prices were read"));
        assert!(
            refused("input = 1", "input = -1").contains("`price[0].input`: is dollars for a million tokens")
        );
        assert!(refused("[\"m\"]", "[]").contains("`price[0].models`: names a model"));
        assert!(refused("output", "ouput").contains("ouput"));
    }
}

//! Statistics of counts, each with its source. Distributions are statrs'.

use std::collections::BTreeMap;

use infradev_model::{Estimate, Proportion};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{Binomial, DiscreteCDF};

/// The normal quantile of a two-sided interval at 95 %.
const Z: f64 = 1.959_963_984_540_054;
/// Resamplings of a bootstrap.
const RESAMPLED: usize = 2000;

/// A share with Wilson's score interval at 95 % (Wilson 1927), without correction for continuity.
pub fn proportion(count: u32, of: u32) -> Proportion {
    let (low, high) = wilson(count, of);
    Proportion { count, of, low, high }
}

fn wilson(count: u32, of: u32) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (f64::from(of), f64::from(count) / f64::from(of));
    let scale = 1.0 + Z * Z / n;
    let centre = (p + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At the ends the interval touches 0 and 1 exactly; rounding must not move it off the share.
    (if count == 0 { 0.0 } else { centre - half }, if count == of { 1.0 } else { centre + half })
}

/// The chance that at least one of k attempts is right, by n attempts of which c are: `1 − C(n−c, k) / C(n, k)`, unbiased
/// (Chen et al. 2021, "Evaluating large language models trained on code"). None where k is 0 or more than n.
pub fn pass_at_k(n: u32, c: u32, k: u32) -> Option<f64> {
    if k == 0 || k > n || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    let miss: f64 = (n - c + 1..=n).map(|i| 1.0 - f64::from(k) / f64::from(i)).product();
    Some(1.0 - miss)
}

/// McNemar's exact test, two-sided: the chance of discordant pairs at least as uneven as these, were both sides alike
/// (McNemar 1947; exact by the binomial distribution). 1 where there are none.
pub fn mcnemar(one_only: u32, other_only: u32) -> f64 {
    let discordant = u64::from(one_only) + u64::from(other_only);
    let less = u64::from(one_only.min(other_only));
    match Binomial::new(0.5, discordant) {
        Ok(binomial) if discordant > 0 => (2.0 * binomial.cdf(less)).min(1.0),
        _ => 1.0,
    }
}

/// The mean over tasks, with a percentile interval at 95 % by resampling tasks (Efron 1979), from this seed. None without a task.
pub fn bootstrap(of_tasks: &[f64], seed: u64) -> Option<Estimate> {
    if of_tasks.is_empty() {
        return None;
    }
    let n = of_tasks.len();
    let mean = |sum: f64| sum / n as f64;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..RESAMPLED)
        .map(|_| mean((0..n).map(|_| of_tasks[random.random_range(0..n as u64) as usize]).sum()))
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[(share * (RESAMPLED - 1) as f64).round() as usize];
    Some(Estimate {
        value: mean(of_tasks.iter().sum()),
        low: at(0.025),
        high: at(0.975),
        tasks: u32::try_from(n).unwrap_or(u32::MAX),
    })
}

/// The middle value, of an even number the mean of both; none without one.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = values.get(half)?;
    Some(if values.len() % 2 == 1 { *upper } else { (values[half - 1] + upper) / 2.0 })
}

/// Cohen's kappa of two raters over the same items (Cohen 1960); none without an item, and where both give one and the same word to
/// all, which leaves nothing to agree on beyond chance.
pub fn kappa<L: Ord>(pairs: &[(L, L)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mut ones: BTreeMap<&L, f64> = BTreeMap::new();
    let mut others: BTreeMap<&L, f64> = BTreeMap::new();
    for (one, other) in pairs {
        *ones.entry(one).or_default() += 1.0;
        *others.entry(other).or_default() += 1.0;
    }
    let observed = pairs.iter().filter(|(one, other)| one == other).count() as f64 / n;
    let chance: f64 = ones.iter().map(|(word, count)| count * others.get(*word).unwrap_or(&0.0)).sum();
    let expected = chance / (n * n);
    let defined = !pairs.is_empty() && (1.0 - expected).abs() > f64::EPSILON;
    defined.then(|| (observed - expected) / (1.0 - expected))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 5e-5, "{got} is not {want}");
    }

    #[test]
    fn wilsons_interval_is_newcombes_table() {
        // Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
        for (count, of, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0000, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let share = proportion(count, of);
            near(share.low, low);
            near(share.high, high);
        }
    }

    #[test]
    fn pass_at_k_is_the_share_of_draws_with_a_right_one() {
        near(pass_at_k(5, 2, 1).unwrap(), 0.4);
        // 1 − C(3,2)/C(5,2) = 1 − 3/10
        near(pass_at_k(5, 2, 2).unwrap(), 0.7);
        near(pass_at_k(200, 10, 10).unwrap(), 0.408_548);
        assert_eq!(pass_at_k(5, 4, 2), Some(1.0));
        assert_eq!(pass_at_k(2, 1, 3), None);
    }

    #[test]
    fn mcnemars_exact_test_has_the_known_values() {
        // R: binom.test(b, b + c)$p.value
        near(mcnemar(5, 1), 0.218_75);
        near(mcnemar(10, 0), 0.001_953);
        near(mcnemar(12, 5), 0.143_463);
        near(mcnemar(3, 3), 1.0);
        near(mcnemar(0, 0), 1.0);
    }

    #[test]
    fn kappa_is_that_of_two_readers_of_fifty_proposals() {
        let table = [("yes", "yes", 20), ("yes", "no", 5), ("no", "yes", 10), ("no", "no", 15)];
        let pairs: Vec<(&str, &str)> =
            table.iter().flat_map(|(one, other, n)| vec![(*one, *other); *n]).collect();
        near(kappa(&pairs).unwrap(), 0.4);
        assert_eq!(kappa(&[("a", "a"), ("a", "a")]), None);
        assert_eq!(kappa::<&str>(&[]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn an_interval_holds_its_share_and_narrows_with_more(count in 0u32..200, more in 0u32..200) {
            let of = count + more;
            prop_assume!(of > 0);
            let share = proportion(count, of);
            let p = f64::from(count) / f64::from(of);
            prop_assert!(0.0 <= share.low && share.low <= p + 1e-12 && p - 1e-12 <= share.high && share.high <= 1.0);
            let tenfold = proportion(10 * count, 10 * of);
            prop_assert!(tenfold.high - tenfold.low < share.high - share.low);
        }

        #[test]
        fn more_attempts_never_lower_the_chance(n in 1u32..40, c in 0u32..40, k in 1u32..40) {
            prop_assume!(c <= n && k < n);
            let (one, more) = (pass_at_k(n, c, k).unwrap(), pass_at_k(n, c, k + 1).unwrap());
            prop_assert!((0.0..=1.0).contains(&one) && one <= more + 1e-12);
        }

        #[test]
        fn which_arm_is_named_first_does_not_matter(b in 0u32..60, c in 0u32..60) {
            let p = mcnemar(b, c);
            prop_assert!((0.0..=1.0).contains(&p) && p == mcnemar(c, b));
        }

        #[test]
        fn a_bootstrap_is_its_seeds_and_holds_its_mean(values in prop::collection::vec(0.0f64..1.0, 1..20), seed in any::<u64>()) {
            let estimate = bootstrap(&values, seed).unwrap();
            prop_assert_eq!(Some(estimate), bootstrap(&values, seed));
            prop_assert!(estimate.low <= estimate.value + 0.05 && estimate.value - 0.05 <= estimate.high);
        }

        #[test]
        fn who_agrees_always_has_a_kappa_of_one(words in prop::collection::vec(0u8..4, 2..40)) {
            let pairs: Vec<(u8, u8)> = words.iter().map(|word| (*word, *word)).collect();
            match kappa(&pairs) {
                Some(kappa) => prop_assert!((kappa - 1.0).abs() < 1e-9),
                None => prop_assert!(words.iter().all(|word| *word == words[0])),
            }
        }
    }
}

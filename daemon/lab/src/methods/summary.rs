//! The summary of a suite of methods: means, spreads, and differences seed by seed.

use serde::Serialize;

use super::runs::MethodRecord;
use super::suite::MethodSuite;

/// All tables of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodComparison {
    schema: &'static str,
    /// The title of the suite.
    pub title: String,
    /// The method that the others are compared with.
    pub baseline: String,
    /// The seeds that have results.
    pub seeds: Vec<u64>,
    /// The tables, by metric.
    pub metrics: Vec<MetricTable>,
}

/// The table of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricTable {
    /// Its name.
    pub metric: String,
    /// The rows by method, in the order of the suite.
    pub methods: Vec<MethodRow>,
}

/// One method's row in the table of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodRow {
    /// Its name.
    pub method: String,
    /// The mean over clients of each run, with its seed; runs that could not measure it are left out.
    pub values: Vec<(u64, f64)>,
    /// Moments over seeds.
    pub moments: Option<Moments>,
    /// Its value less that of the baseline with the same seed; none for the baseline itself.
    pub difference: Option<Difference>,
}

/// Mean and spread of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with `n - 1` in the denominator; none of one value.
    pub deviation: Option<f64>,
}

/// Paired differences of a method from the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Their moments.
    pub moments: Moments,
    /// Pairs: seeds that both methods have.
    pub pairs: usize,
    /// Student's t of the paired differences, with `pairs - 1` degrees of freedom; none of one pair, or where all differences are equal.
    pub t: Option<f64>,
}

impl Moments {
    /// The moments of a sample; none of an empty one.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(Self { mean, deviation })
    }
}

impl Difference {
    /// The moments and the t of these differences; none where there is no pair.
    pub fn of(differences: &[f64]) -> Option<Self> {
        let moments = Moments::of(differences)?;
        let error = moments.deviation.map(|deviation| deviation / (differences.len() as f64).sqrt());
        let t = error.filter(|error| *error > 0.0).map(|error| moments.mean / error);
        Some(Self { moments, pairs: differences.len(), t })
    }
}

/// Compares all results of a suite.
pub fn compare_methods(suite: &MethodSuite, records: &[&MethodRecord]) -> MethodComparison {
    let mut methods: Vec<&str> = Vec::new();
    let mut measured: Vec<&String> = Vec::new();
    let mut seeds: Vec<u64> = Vec::new();
    for record in records {
        add(&mut methods, record.method.as_str());
        add(&mut seeds, record.seed);
        record.metrics.iter().for_each(|metric| add(&mut measured, metric));
    }
    let shown: Vec<&String> = if suite.metrics.is_empty() { measured } else { suite.metrics.iter().collect() };
    let baseline = suite.baseline.clone().or_else(|| methods.first().map(|name| (*name).to_owned()));
    let baseline = baseline.unwrap_or_default();
    let table = |metric: &String| {
        let values = |method: &str| -> Vec<(u64, f64)> {
            let own = records.iter().filter(|record| record.method == method);
            own.filter_map(|record| Some((record.seed, record.value(metric)?))).collect()
        };
        let others = values(&baseline);
        let row = |method: &&str| row(method, values(method), (**method != *baseline).then_some(&others));
        MetricTable { metric: metric.clone(), methods: methods.iter().map(row).collect() }
    };
    MethodComparison {
        schema: "mingle.method-comparison/1",
        title: suite.title.clone(),
        metrics: shown.into_iter().map(table).collect(),
        baseline,
        seeds,
    }
}

fn row(method: &str, values: Vec<(u64, f64)>, others: Option<&Vec<(u64, f64)>>) -> MethodRow {
    let differences = others.map(|others| -> Vec<f64> {
        let of = |seed: u64| others.iter().find(|other| other.0 == seed).map(|other| other.1);
        values.iter().filter_map(|(seed, value)| Some(value - of(*seed)?)).collect()
    });
    let alone: Vec<f64> = values.iter().map(|value| value.1).collect();
    MethodRow {
        method: method.to_owned(),
        moments: Moments::of(&alone),
        difference: differences.and_then(|differences| Difference::of(&differences)),
        values,
    }
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

impl MethodRecord {
    /// A metric of the kept model, by its name: the mean over clients.
    pub fn value(&self, metric: &str) -> Option<f64> {
        let at = self.metrics.iter().position(|name| name == metric)?;
        self.mean.get(at).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn moments_and_paired_differences_are_those_of_hand() {
        let found = Moments::of(&[1.0, 2.0, 4.0]).unwrap();
        assert!((found.mean - 7.0 / 3.0).abs() < 1e-12);
        assert!((found.deviation.unwrap() - (7.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Moments::of(&[]), None);
        assert_eq!(Moments::of(&[3.0]).unwrap(), Moments { mean: 3.0, deviation: None });
        // Mean 2, deviation 1, three pairs: t = 2 sqrt(3).
        let difference = Difference::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((difference.t.unwrap() - 12.0_f64.sqrt()).abs() < 1e-12 && difference.pairs == 3);
        assert_eq!(Difference::of(&[0.5, 0.5]).unwrap().t, None);
        // Seeds without a result of the baseline make no pair.
        let row = row("one", vec![(0, 2.0), (1, 5.0), (7, 100.0)], Some(&vec![(1, 1.0), (0, 1.0)]));
        assert_eq!(row.difference.unwrap().moments.mean, 2.5);
        assert_eq!(row.difference.unwrap().pairs, 2);
    }
}

//! Figures, whoever reads them: Prometheus as text, a collector over OTLP. A family is one name with its points; all that
//! is known of a name is said where the family is made.

use std::collections::BTreeMap;

/// The bounds of durations, in seconds.
pub const BOUNDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// Of what is over within a moment.
pub const FINE_BOUNDS: &[f64] =
    &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0];

pub type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    pub name: &'static str,
    pub about: &'static str,
    /// As UCUM writes it: `s`, `{token}`, or nothing for a count.
    pub unit: &'static str,
    pub points: Points,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    Counter(Vec<(Labels, u64)>),
    Gauge(Vec<(Labels, u64)>),
    Histogram(Vec<(Labels, Histogram)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    pub bounds: &'static [f64],
    /// How many were within each of the bounds, and not within the one before; at last, those beyond.
    pub counts: Vec<u64>,
    pub sum: f64,
}

/// Labels are names that people choose: past so many of a kind, the rest is counted as one.
const MOST_LABELS: usize = 500;

/// What stands for those that are too many.
const OTHERS: &str = "(others)";

/// The figure of these labels, or that of all others if there are too many.
pub fn labelled<const N: usize, T>(
    figures: &mut BTreeMap<[String; N], T>,
    key: [String; N],
    new: impl FnOnce() -> T,
) -> &mut T {
    let is_known = figures.contains_key(&key) || figures.len() < MOST_LABELS;
    let key = if is_known { key } else { std::array::from_fn(|_| OTHERS.to_owned()) };
    figures.entry(key).or_insert_with(new)
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub fn add(&mut self, value: f64) {
        let place = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
            self.sum += value;
        }
    }

    /// What another of the same bounds has counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new(BOUNDS)
    }
}

impl Points {
    pub fn kind(&self) -> &'static str {
        match self {
            Points::Counter(_) => "counter",
            Points::Gauge(_) => "gauge",
            Points::Histogram(_) => "histogram",
        }
    }
}

impl Family {
    /// The names of its labels, as often as they stand there.
    pub fn label_names(&self) -> Vec<&'static str> {
        let names = |labels: &Labels| labels.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        match &self.points {
            Points::Counter(points) | Points::Gauge(points) => {
                points.iter().flat_map(|(all, _)| names(all)).collect()
            }
            Points::Histogram(points) => points.iter().flat_map(|(all, _)| names(all)).collect(),
        }
    }

    pub fn counter(
        name: &'static str,
        about: &'static str,
        all: impl Iterator<Item = (Labels, u64)>,
    ) -> Self {
        Self { name, about, unit: "", points: Points::Counter(all.collect()) }
    }

    pub fn gauge(name: &'static str, about: &'static str, all: impl Iterator<Item = (Labels, u64)>) -> Self {
        Self { name, about, unit: "", points: Points::Gauge(all.collect()) }
    }

    /// Of durations.
    pub fn seconds(
        name: &'static str,
        about: &'static str,
        all: impl Iterator<Item = (Labels, Histogram)>,
    ) -> Self {
        Self { name, about, unit: "s", points: Points::Histogram(all.collect()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_end_become_one() {
        let mut figures: BTreeMap<[String; 1], u64> = BTreeMap::new();
        for number in 0..2 * MOST_LABELS {
            *labelled(&mut figures, [number.to_string()], || 0) += 1;
        }
        assert_eq!(figures.len(), MOST_LABELS + 1);
        assert_eq!(figures[&[OTHERS.to_owned()]], MOST_LABELS as u64);
    }

    #[test]
    fn durations_fall_into_their_bounds() {
        let mut histogram = Histogram::default();
        for seconds in [0.001, 0.005, 0.3, 1e6] {
            histogram.add(seconds);
        }
        assert_eq!((histogram.counts[0], histogram.counts[6], histogram.counts[BOUNDS.len()]), (2, 1, 1));
        assert_eq!(histogram.count(), 4);
    }
}

//! One figure with what it is compared with.

use crate::machine::Weather;

#[derive(Debug, Clone)]
pub struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    /// What the machine itself needs for the like, and its name.
    floor: Option<(f64, &'static str)>,
    bar: Option<Bar>,
    weather: Weather,
}

/// What design section 10 asks for, in the figure's own unit.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    Under(f64),
    AtLeast(f64),
}

impl Figure {
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str, weather: Weather) -> Self {
        Self { what: what.into(), value, unit, floor: None, bar: None, weather }
    }

    /// The floor is given in the figure's unit.
    pub fn beside(mut self, floor: f64, name: &'static str) -> Self {
        self.floor = Some((floor, name));
        self
    }

    pub fn bar(mut self, bar: Bar) -> Self {
        self.bar = Some(bar);
        self
    }

    pub fn cells(&self) -> [String; 6] {
        let floor = match self.floor {
            Some((floor, name)) if floor > 0.0 => format!("{} x {name}", short(self.value / floor)),
            Some(_) | None => String::new(),
        };
        [
            self.what.clone(),
            format!("{} {}", short(self.value), self.unit).trim_end().to_owned(),
            floor,
            format!("{:.1} %", self.weather.steal),
            format!("{:.0} %", self.weather.idle),
            self.bar.map(|bar| bar.verdict(self.value, self.unit)).unwrap_or_default(),
        ]
    }
}

impl Bar {
    fn verdict(self, value: f64, unit: &str) -> String {
        let (asked, excess) = match self {
            Bar::Under(bar) => (format!("under {}", short(bar)), value / bar - 1.0),
            Bar::AtLeast(bar) => (format!("at least {}", short(bar)), 1.0 - value / bar),
        };
        let asked = format!("{asked} {unit}");
        match excess > 0.0 {
            true => format!("{}: missed by {} %", asked.trim_end(), short(excess * 100.0)),
            false => format!("{}: reached", asked.trim_end()),
        }
    }
}

/// Three digits that matter, or all of a whole number.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == size.trunc() => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(value: f64, bar: Bar) -> [String; 6] {
        let weather = Weather { steal: 1.25, idle: 40.0 };
        Figure::new("first call", value, "ms", weather).beside(0.5, "fdatasync p50").bar(bar).cells()
    }

    #[test]
    fn says_how_far_a_bar_was_missed_and_what_the_floor_is() {
        let missed = cells(2.5, Bar::Under(2.0));
        assert_eq!(missed[1..3], ["2.50 ms", "5 x fdatasync p50"]);
        assert_eq!(missed[3..], ["1.2 %", "40 %", "under 2 ms: missed by 25 %"]);
        assert_eq!(cells(1.5, Bar::Under(2.0))[5], "under 2 ms: reached");
        assert_eq!(cells(1.5, Bar::AtLeast(2.0))[5], "at least 2 ms: missed by 25 %");
        assert_eq!(cells(2.0, Bar::AtLeast(2.0))[5], "at least 2 ms: reached");
    }
}

//! What this machine is, and how much of it others took while something was measured.

use std::fmt;
use std::fs;

use anyhow::Context as _;

/// Nothing here names the machine itself.
pub struct Machine {
    cores: usize,
    processor: String,
    kernel: String,
    memory: String,
}

impl Machine {
    pub fn read() -> anyhow::Result<Self> {
        let cores = std::thread::available_parallelism().context("the cores can't be counted")?.get();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("the kernel can't be told")?;
        Ok(Self {
            cores,
            processor: value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned()),
            kernel: kernel.trim().to_owned(),
            memory: value("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".to_owned()),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, processor, kernel, memory } = self;
        write!(f, "{cores} cores, {processor}, memory {memory}, Linux {kernel}")
    }
}

/// Has the disk take all that was written before, by whomever. Half a minute later the kernel would write it in one piece,
/// and whoever syncs beside that would be measured with it.
pub fn settle_disk() {
    rustix::fs::sync();
}

/// Shares of all cores' time, in per cent. Steal went to other machines on the same host; idle was left over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weather {
    pub steal: f64,
    pub idle: f64,
}

/// Begun before a measurement and read behind it.
pub struct WeatherWatch(Ticks);

impl WeatherWatch {
    pub fn begin() -> anyhow::Result<Self> {
        Ticks::read().map(Self)
    }

    pub fn end(&self) -> anyhow::Result<Weather> {
        Ok(self.0.weather_until(&Ticks::read()?))
    }
}

/// Since the machine started, over all cores.
#[derive(Debug, PartialEq)]
struct Ticks {
    all: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    fn read() -> anyhow::Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("/proc/stat can't be read")?;
        Self::parse(&stat).context("/proc/stat has no cpu line")
    }

    /// user nice system idle iowait irq softirq steal; what follows is contained in the first two.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> =
            line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
        let &[_, _, _, idle, iowait, _, _, steal] = fields.as_slice() else { return None };
        Some(Self { all: fields.iter().sum(), idle: idle + iowait, steal })
    }

    fn weather_until(&self, later: &Ticks) -> Weather {
        let all = later.all.saturating_sub(self.all).max(1) as f64;
        let share = |before: u64, after: u64| after.saturating_sub(before) as f64 / all * 100.0;
        Weather { steal: share(self.steal, later.steal), idle: share(self.idle, later.idle) }
    }
}

/// The value of the first `key : value` line.
fn value(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weather_is_the_share_of_what_passed_in_between() {
        let before = Ticks::parse("cpu  100 0 100 700 50 0 0 50 9 9\ncpu0 1 1\n").expect("ticks");
        let after = Ticks::parse("cpu  120 0 120 730 60 0 0 70 9 9\n").expect("ticks");
        assert_eq!(before.weather_until(&after), Weather { steal: 20.0, idle: 40.0 });
    }
}

//! Comparisons of Mingle with a rival: timed in turns, reported as rows.
//!
//! Timing one side after the other would compare two moments of the machine. Here each turn times both sides, and the
//! ratio of a turn is taken before the median, so that other load on the machine affects both alike.
//!
//! ```
//! use mingle_bench::{ComparisonRow, in_turns};
//!
//! let numbers: Vec<u64> = (0..10_000).collect();
//! let turns = in_turns(11, || numbers.iter().sum::<u64>(), || numbers.iter().fold(0, |sum, number| sum ^ number));
//! ComparisonRow::of_times("arithmetic", "sum", "exclusive or", &turns).print();
//! ```

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The environment variable of the file to which rows are added as JSON, one a line; `scripts/bench` makes a report of
/// it.
pub const ROWS_ENV: &str = "MINGLE_BENCH_ROWS";

/// The times of both sides, turn by turn.
#[derive(Clone, Debug)]
pub struct Turns {
    pairs: Vec<(Duration, Duration)>,
}

/// Times both sides in turn, `count` times each, after one turn that does not count.
pub fn in_turns<A, B>(count: usize, mut ours: impl FnMut() -> A, mut theirs: impl FnMut() -> B) -> Turns {
    let mut turns = Turns::empty();
    for turn in 0..=count {
        let pair = (time(&mut ours), time(&mut theirs));
        if turn > 0 {
            turns.push(pair.0, pair.1);
        }
    }
    turns
}

/// The time that one call of `pass` takes.
pub fn time<T>(pass: &mut impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    black_box(pass());
    start.elapsed()
}

impl Turns {
    /// No turns yet.
    pub const fn empty() -> Self {
        Self { pairs: Vec::new() }
    }

    /// Adds a turn that was timed elsewhere.
    pub fn push(&mut self, ours: Duration, theirs: Duration) {
        self.pairs.push((ours, theirs));
    }

    /// The medians of both sides.
    pub fn medians(&self) -> (Duration, Duration) {
        let median = |side: fn(&(Duration, Duration)) -> Duration| {
            let mut times: Vec<Duration> = self.pairs.iter().map(side).collect();
            times.sort_unstable();
            times.get(times.len() / 2).copied().unwrap_or_default()
        };
        (median(|pair| pair.0), median(|pair| pair.1))
    }

    /// The speed relative to the rival: the lower quartile over the turns, the median, the upper quartile.
    pub fn ratios(&self) -> [f64; 3] {
        let ratio = |(ours, theirs): &(Duration, Duration)| theirs.as_secs_f64() / ours.as_secs_f64();
        let mut ratios: Vec<f64> = self.pairs.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| ratios.get(ratios.len() * quarter / 4).copied().unwrap_or(f64::NAN))
    }
}

/// One comparison, as a row of the report.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonRow {
    /// The section of the report.
    pub section: &'static str,
    /// The operation that was timed.
    pub what: String,
    /// The rival that it is compared with.
    pub rival: String,
    /// The unit of `ours` and `theirs`.
    pub unit: &'static str,
    /// Mingle's median.
    pub ours: f64,
    /// The rival's median.
    pub theirs: f64,
    /// The speed relative to the rival, as the median over the turns.
    pub ratio: f64,
    /// The lower and upper quartiles of the ratio.
    pub spread: [f64; 2],
}

impl ComparisonRow {
    /// A comparison by time, for sides that do the same.
    pub fn of_times(section: &'static str, what: impl Into<String>, rival: impl Into<String>, turns: &Turns) -> Self {
        let (ours, theirs) = turns.medians();
        let [low, ratio, high] = turns.ratios();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        Self {
            section,
            what: what.into(),
            rival: rival.into(),
            unit: "ms",
            ours: milliseconds(ours),
            theirs: milliseconds(theirs),
            ratio,
            spread: [low, high],
        }
    }

    /// A comparison by bytes a second, for sides that move different numbers of bytes.
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    pub fn of_bytes(
        section: &'static str,
        what: impl Into<String>,
        rival: impl Into<String>,
        turns: &Turns,
        (our_bytes, their_bytes): (usize, usize),
    ) -> Self {
        let (ours, theirs) = turns.medians();
        let work = our_bytes as f64 / their_bytes as f64;
        let [low, ratio, high] = turns.ratios().map(|ratio| ratio * work);
        let speed = |bytes: usize, time: Duration| bytes as f64 / time.as_secs_f64() / 1e9;
        Self {
            section,
            what: what.into(),
            rival: rival.into(),
            unit: "GB/s",
            ours: speed(our_bytes, ours),
            theirs: speed(their_bytes, theirs),
            ratio,
            spread: [low, high],
        }
    }

    /// Prints the row, and adds it to the file of the report where there is one.
    ///
    /// # Panics
    /// If the report cannot be written: a benchmark whose result is lost should not pass.
    pub fn print(&self) {
        let Self { what, rival, unit, ours, theirs, ratio, spread: [low, high], .. } = self;
        println!("{what:<56} {ours:>10.3} {theirs:>10.3} {unit:<5} {ratio:>6.2}  [{low:.2}, {high:.2}]  {rival}");
        if let Some(path) = std::env::var_os(ROWS_ENV) {
            let file = OpenOptions::new().create(true).append(true).open(&path);
            let written = file.and_then(|mut file| writeln!(file, "{}", serde_json::json!(self)));
            assert!(written.is_ok(), "cannot write {}: {written:?}", path.display());
        }
    }
}

/// Prints the heads of the columns of [`ComparisonRow::print`].
pub fn print_head(title: &str) {
    println!("\n{title:<56} {:>10} {:>10} {:<5} {:>6}  quartiles     rival", "mingle", "rival", "", "ratio");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(pairs: &[(u64, u64)]) -> Turns {
        let mut turns = Turns::empty();
        pairs.iter().for_each(|&(a, b)| turns.push(Duration::from_millis(a), Duration::from_millis(b)));
        turns
    }

    #[test]
    fn a_ratio_is_that_of_a_turn_and_not_of_two_medians() {
        // A machine that is ten times as slow in every other turn; the rival takes twice as long in each turn.
        let turns = turns(&[(1, 2), (10, 20), (1, 2), (10, 20), (2, 4)]);
        assert_eq!(turns.ratios(), [2.0; 3]);
        assert_eq!(turns.medians(), (Duration::from_millis(2), Duration::from_millis(4)));
    }

    #[test]
    fn bytes_a_second_are_compared_where_one_side_moves_more() {
        let row = ComparisonRow::of_bytes(
            "mixing",
            "absorb",
            "copy",
            &turns(&[(3, 2), (3, 2), (3, 2)]),
            (3_000_000, 2_000_000),
        );
        assert!((row.ratio - 1.0).abs() < 1e-9 && (row.ours - 1.0).abs() < 1e-9, "{row:?}");
        let row = ComparisonRow::of_times("training", "step", "PyTorch", &turns(&[(3, 6)]));
        assert!((row.ratio - 2.0).abs() < 1e-9 && row.unit == "ms", "{row:?}");
    }
}

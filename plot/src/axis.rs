//! One axis of a chart: its range, the positions of values on it, and its ticks.
//!
//! Linear ticks stand at 1, 2 or 5 times a power of ten; logarithmic ones at powers of ten.

/// The distribution of values over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal distances.
    Linear,
    /// Equal ratios have equal distances. Values that are not above zero have no place.
    Log,
}

/// The ends of an axis: at its data, or at the next ticks beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    AtData,
    AtTicks,
}

/// A scale with its range and its ticks. Positions run from 0 (lowest value) to 1 (highest).
#[derive(Debug)]
pub(super) struct Axis {
    scale: Scale,
    /// The lowest value, in the unit of the scale: the value itself, or its decimal logarithm.
    low: f64,
    high: f64,
    /// Ticks, ascending by position.
    pub(super) ticks: Vec<Tick>,
}

/// A marked position on the axis; minor ticks have no label.
#[derive(Debug)]
pub(super) struct Tick {
    pub(super) position: f64,
    pub(super) label: Option<String>,
}

/// Beyond this, differences of values may overflow.
const LARGEST: f64 = 1e300;
/// Below this, a range is a point: the labels of its ticks would not differ.
const SMALLEST: f64 = 1e-290;
/// The most labelled ticks that an axis aims for, not counting the one at its far end.
const TICKS: f64 = 6.0;
/// Up to this many decades there is room for the ticks between powers of ten.
const DECADES_WITH_MINOR_TICKS: i32 = 3;

impl Axis {
    /// The axis that covers all of `values` that have a place on it; 0 to 1 (or 1 to 10) where none has.
    pub(super) fn covering(scale: Scale, ends: Ends, values: impl Iterator<Item = f64>) -> Self {
        let range =
            values.filter_map(|value| on_scale(scale, value)).fold(
                None,
                |range: Option<(f64, f64)>, value| match range {
                    None => Some((value, value)),
                    Some((low, high)) => Some((low.min(value), high.max(value))),
                },
            );
        match scale {
            Scale::Linear => Self::linear(range.unwrap_or((0.0, 1.0)), ends),
            Scale::Log => Self::log(range.unwrap_or((0.0, 1.0))),
        }
    }

    /// The position of `value`, or `None` where it has no place: not finite, or not above zero on a logarithmic scale.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        on_scale(self.scale, value).map(|value| self.fraction(value))
    }

    fn fraction(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn linear((mut low, mut high): (f64, f64), ends: Ends) -> Self {
        let magnitude = low.abs().max(high.abs());
        if high - low <= (magnitude * 1e-9).max(SMALLEST) {
            let room = if magnitude <= SMALLEST { 1.0 } else { magnitude / 2.0 };
            low -= room;
            high += room;
        }
        let step = nice_step((high - low) / TICKS);
        // The quotients of values that lie on a tick may miss it by a rounding error.
        let mut first = (low / step - 1e-6).ceil();
        let mut last = (high / step + 1e-6).floor();
        if ends == Ends::AtTicks {
            first = (low / step + 1e-6).floor();
            last = (high / step - 1e-6).ceil();
            low = first * step;
            high = last * step;
        }
        let mut axis = Self { scale: Scale::Linear, low, high, ticks: Vec::new() };
        for index in 0..=(last - first) as usize {
            let value = (first + index as f64) * step;
            let position = axis.fraction(value).clamp(0.0, 1.0);
            axis.ticks.push(Tick { position, label: Some(decimal(value, step)) });
        }
        axis
    }

    fn log((low, high): (f64, f64)) -> Self {
        let first = (low + 1e-9).floor() as i32;
        let last = ((high - 1e-9).ceil() as i32).max(first + 1);
        let mut axis = Self { scale: Scale::Log, low: first.into(), high: last.into(), ticks: Vec::new() };
        let decades = last - first;
        let labelled_every = (f64::from(decades) / TICKS).ceil() as i32;
        for exponent in first..=last {
            let label = ((exponent - first) % labelled_every == 0).then(|| power_of_ten(exponent));
            axis.ticks.push(Tick { position: axis.fraction(exponent.into()), label });
            if decades <= DECADES_WITH_MINOR_TICKS && exponent < last {
                for digit in 2..10 {
                    let position = axis.fraction(f64::from(exponent) + f64::from(digit).log10());
                    axis.ticks.push(Tick { position, label: None });
                }
            }
        }
        axis
    }
}

fn on_scale(scale: Scale, value: f64) -> Option<f64> {
    match scale {
        _ if !value.is_finite() || value.abs() > LARGEST => None,
        Scale::Linear => Some(value),
        Scale::Log => (value > 0.0).then(|| value.log10()),
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|&nice| nice >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// `value` with the decimals that distinguish it from its neighbours one `step` away.
fn decimal(value: f64, step: f64) -> String {
    let value = value + 0.0; // no "-0"
    let exponent = step.log10().floor();
    if !(-5.0..6.0).contains(&exponent) && value != 0.0 {
        let digits = (value.abs().log10().floor() - exponent).max(0.0) as usize;
        return format!("{value:.digits$e}");
    }
    format!("{value:.decimals$}", decimals = (-exponent).max(0.0) as usize)
}

fn power_of_ten(exponent: i32) -> String {
    match exponent {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10{}", exponent.to_string().chars().map(superscript).collect::<String>()),
    }
}

fn superscript(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        // 0 and 4 to 9 are consecutive in Unicode.
        _ => digit.to_digit(10).and_then(|value| char::from_u32(0x2070 + value)).unwrap_or(digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    fn linear(values: &[f64], ends: Ends) -> Axis {
        Axis::covering(Scale::Linear, ends, values.iter().copied())
    }

    fn log(values: &[f64]) -> Axis {
        Axis::covering(Scale::Log, Ends::AtTicks, values.iter().copied())
    }

    #[test]
    fn linear_ticks_are_round_numbers_around_the_data() {
        let axis = linear(&[0.12, 0.953], Ends::AtTicks);
        assert_eq!(labels(&axis), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(axis.position(0.5), Some(0.5));
    }

    #[test]
    fn ticks_stay_inside_an_axis_that_ends_at_its_data() {
        let axis = linear(&[3.0, 297.0], Ends::AtData);
        assert_eq!(labels(&axis), ["50", "100", "150", "200", "250"]);
        assert_eq!(axis.position(3.0), Some(0.0));
        assert_eq!(axis.position(297.0), Some(1.0));
    }

    #[test]
    fn data_that_ends_on_a_tick_gets_no_empty_room_beyond() {
        assert_eq!(labels(&linear(&[0.0, 1.0], Ends::AtTicks)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear(&[0.0, 300.0], Ends::AtData)), ["0", "50", "100", "150", "200", "250", "300"]);
    }

    #[test]
    fn log_ticks_are_powers_of_ten_with_minor_ticks_where_there_is_room() {
        let axis = log(&[2e-3, 0.5]);
        assert_eq!(labels(&axis), ["10⁻³", "10⁻²", "10⁻¹", "1"]);
        assert_eq!(axis.ticks.len(), 4 + 3 * 8);
        assert!((axis.position(1e-2).unwrap_or(f64::NAN) - 1.0 / 3.0).abs() < 1e-9);

        let wide = log(&[1e-12, 1e3]);
        assert_eq!(labels(&wide), ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "1", "10³"]);
        assert_eq!(wide.ticks.len(), 16);
    }

    #[test]
    fn exact_powers_of_ten_stay_on_their_tick() {
        for exponent in -12..12 {
            let axis = log(&[10f64.powi(exponent), 10f64.powi(exponent + 2)]);
            assert_eq!(axis.ticks.len(), 3 + 2 * 8, "exponent {exponent}");
        }
    }

    #[test]
    fn values_without_a_place_have_no_position() {
        let axis = log(&[1.0, 10.0, 0.0, -3.0, f64::NAN, f64::INFINITY]);
        assert_eq!(labels(&axis), ["1", "10"]);
        for value in [0.0, -3.0, f64::NAN, f64::INFINITY] {
            assert_eq!(axis.position(value), None);
        }
        assert_eq!(linear(&[0.0], Ends::AtTicks).position(f64::NEG_INFINITY), None);
    }

    #[test]
    fn every_range_gives_finite_rising_ticks_inside_the_axis() {
        let tricky: [&[f64]; 13] = [
            &[],
            &[f64::NAN],
            &[0.0],
            &[0.5],
            &[-7.0, -7.0],
            &[1e15, 1e15 + 1e-3],
            &[-1e300, 1e300],
            &[f64::MAX],
            &[1e-300, 3e-300],
            &[5e-324],
            &[0.0, 5e-324],
            &[-0.3, 0.7],
            &[1e-320, 1e300],
        ];
        for values in tricky {
            for axis in [linear(values, Ends::AtTicks), linear(values, Ends::AtData), log(values)] {
                assert!(axis.low < axis.high, "{values:?}: {axis:?}");
                assert!(
                    axis.ticks.iter().all(|tick| (-1e-9..=1.0 + 1e-9).contains(&tick.position)),
                    "{values:?}: {axis:?}"
                );
                assert!(axis.ticks.windows(2).all(|pair| pair[0].position < pair[1].position), "{values:?}: {axis:?}");
                assert!(labels(&axis).len() <= 9, "{values:?}: {axis:?}");
                let mut distinct = labels(&axis);
                distinct.dedup();
                assert_eq!(distinct, labels(&axis), "{values:?}");
            }
        }
    }
}

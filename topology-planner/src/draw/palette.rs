//! Colours for ordered things: slots, steps, shares.
//!
//! From violet (first) by blue, green, yellow and red to brown (last): the smooth rainbow of Tol ("Colour Schemes",
//! SRON/EPS/TN/09-002), which was made for readers with any colour vision, with its anchors spaced so that neighbours
//! are about equally far apart for normal, protan, deutan and tritan readers.

/// The scale at equal distances.
const ANCHORS: [[u8; 3]; 13] = [
    [0x6f, 0x4c, 0x9b],
    [0x55, 0x69, 0xb9],
    [0x4d, 0x8b, 0xc6],
    [0x57, 0xa3, 0xac],
    [0x6c, 0xb2, 0x8c],
    [0x87, 0xbb, 0x6d],
    [0xb1, 0xbd, 0x4e],
    [0xde, 0xa9, 0x3c],
    [0xe6, 0x7f, 0x33],
    [0xdf, 0x48, 0x28],
    [0xbc, 0x22, 0x1e],
    [0x86, 0x20, 0x19],
    [0x52, 0x1a, 0x13],
];

/// Resolution of the interpolation: whole numbers, so that all machines write the same colour.
const FINE: usize = 1_000;

/// Colour `index` of `count`, as `#rrggbb`. One colour alone is the blue near the beginning.
pub(super) fn colour(index: usize, count: usize) -> String {
    let spans = ANCHORS.len() - 1;
    let at = if count < 2 { FINE } else { index.min(count - 1) * spans * FINE / (count - 1) };
    let span = (at / FINE).min(spans - 1);
    let part = at - span * FINE;
    let [r, g, b] = [0, 1, 2].map(|channel| {
        let (low, high) = (usize::from(ANCHORS[span][channel]), usize::from(ANCHORS[span + 1][channel]));
        (low * (FINE - part) + high * part + FINE / 2) / FINE
    });
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Matrices that turn a colour (linear RGB) into the one a dichromat sees: Machado, Oliveira and Fernandes (2009),
    /// severity 1.
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];

    fn linear(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: &[[f64; 3]; 3], [r, g, b]: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| (row[0] * r + row[1] * g + row[2] * b).clamp(0.0, 1.0))
    }

    /// CIE 1976 L*a*b* for D65.
    fn lab(linear: [f64; 3]) -> [f64; 3] {
        let [r, g, b] = linear;
        let f = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
        let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
        let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
        (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn slots_differ_for_any_colour_vision() {
        for vision in &VISIONS {
            for count in 2..=28 {
                // A distance of 2.3 is where a difference begins to be noticed.
                let (neighbor, other) = if count <= 18 { (3.5, 6.5) } else { (2.3, 4.0) };
                let seen: Vec<_> = (0..count).map(|at| lab(times(vision, linear(&colour(at, count))))).collect();
                for a in 0..count {
                    for b in a + 1..count {
                        let least = if b - a == 1 { neighbor } else { other };
                        assert!(distance(seen[a], seen[b]) > least, "{a} and {b} of {count} in {vision:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn all_colours_stand_out_on_white() {
        for at in 0..1_000 {
            let [r, g, b] = linear(&colour(at, 1_000));
            let luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
            assert!(1.05 / (luminance + 0.05) > 2.0, "{}", colour(at, 1_000));
        }
    }

    #[test]
    fn the_ends_of_the_scale_are_its_anchors() {
        assert_eq!((colour(0, 18).as_str(), colour(17, 18).as_str()), ("#6f4c9b", "#521a13"));
        assert_eq!((colour(0, 1).as_str(), colour(0, 0).as_str()), ("#5569b9", "#5569b9"));
    }
}

//! The accountant compared with dp-accounting, whose figures are stored in `data/`.

use mingle_privacy::rdp_accountant::RdpAccountant;

const FIGURES: &str = include_str!("../data/epsilons.csv");

#[test]
fn epsilons_are_those_of_dp_accounting() {
    let rows = FIGURES.lines().filter(|line| !line.starts_with(['#', 'n']));
    let (mut count, mut worst) = (0, 0.0_f64);
    for row in rows {
        let numbers: Vec<f64> = row.split(',').map(|cell| cell.parse().expect(row)).collect();
        let &[noise, steps, delta, expected] = numbers.as_slice() else { panic!("{row}") };
        let mut accountant = RdpAccountant::default();
        accountant.compose_gaussian(noise, steps as u64);
        let found = accountant.epsilon(delta);
        assert!((found - expected).abs() <= 1e-3 * expected.max(1.0), "{row}: found {found}");
        (count, worst) = (count + 1, worst.max((found - expected).abs() / expected.max(1.0)));
    }
    assert_eq!(count, 150);
    assert!(worst < 1e-6, "the largest relative difference is {worst}");
}

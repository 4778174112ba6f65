//! The spectrum of small periods, from the product as a matrix.

use faer::Mat;

use super::{Unresolved, moduli, symmetric_moduli};
use crate::step::MixingStep;

/// The product of the steps, column by column: the distribution of a unit of mass that starts at each node.
pub(super) fn product(node_count: usize, steps: &[MixingStep]) -> Mat<f64> {
    let mut product = Mat::zeros(node_count, node_count);
    let mut column = vec![0.0; node_count];
    let mut scratch = vec![0.0; node_count];
    for source in 0..node_count {
        column.fill(0.0);
        column[source] = 1.0;
        steps.iter().for_each(|step| step.mix(&mut column, &mut scratch));
        for (node, &mass) in column.iter().enumerate() {
            product[(node, source)] = mass;
        }
    }
    product
}

/// A step has ended all differences when less than this fraction of them is left: the rest is rounding.
const ENDED: f64 = 1e-12;

/// `|lambda_2|` of a period of several steps, however small. Only the differences are multiplied out, step by step, so
/// that the answer has its relative accuracy even where repeated contraction has made it far smaller than the rounding
/// errors of the product. 0 exactly when a step ends all differences.
pub(super) fn second_modulus_of_period(node_count: usize, steps: &[MixingStep]) -> Result<f64, Unresolved> {
    let mean = 1.0 / node_count as f64;
    let mut columns: Vec<Vec<f64>> = (0..node_count)
        .map(|source| (0..node_count).map(|node| f64::from(u8::from(node == source)) - mean).collect())
        .collect();
    let mut scratch = vec![0.0; node_count];
    let mut largest = 1.0;
    for step in steps {
        let before = largest;
        largest = 0.0;
        for column in &mut columns {
            step.mix(column, &mut scratch);
            // A column-stochastic step keeps the sum, which is 0, but for rounding.
            let drift = column.iter().sum::<f64>() * mean;
            column.iter_mut().for_each(|x| *x -= drift);
            largest = column.iter().fold(largest, |most: f64, x| most.max(x.abs()));
        }
        if largest <= ENDED * before {
            return Ok(0.0);
        }
    }
    let scaled = Mat::from_fn(node_count, node_count, |node, source| columns[source][node] / largest);
    Ok(moduli(&scaled)?.first().map_or(0.0, |modulus| modulus * largest))
}

pub(super) fn second_modulus(product: &Mat<f64>) -> Result<f64, Unresolved> {
    let n = product.nrows();
    let is_symmetric = (0..n).all(|i| (0..i).all(|j| product[(i, j)] == product[(j, i)]));
    let moduli = if is_symmetric { symmetric_moduli(product)? } else { moduli(product)? };
    Ok(moduli.get(1).copied().unwrap_or(0.0))
}

/// `n pi` by elimination without subtraction (Grassmann, Taksar and Heyman, "Regenerative analysis and steady state
/// distributions for Markov chains", Operations Research 33, 1985): every entry keeps its relative accuracy, down to
/// the weight of a node that is nearly starved. Nodes outside the recurrent class get 0.
pub(super) fn perron(product: &Mat<f64>, recurrent: &[usize]) -> Vec<f64> {
    let size = recurrent.len();
    // rates[i][j]: share of the mass at node j of the class that moves to node i.
    let mut rates = Mat::from_fn(size, size, |i, j| product[(recurrent[i], recurrent[j])]);
    for last in (1..size).rev() {
        let leaving: f64 = (0..last).map(|i| rates[(i, last)]).sum();
        for i in 0..last {
            rates[(i, last)] /= leaving;
        }
        for j in 0..last {
            let passed_on = rates[(last, j)];
            for i in 0..last {
                rates[(i, j)] += passed_on * rates[(i, last)];
            }
        }
        for j in 0..last {
            rates[(last, j)] /= leaving;
        }
    }
    let mut mass = vec![0.0; size];
    if let Some(first) = mass.first_mut() {
        *first = 1.0;
    }
    for node in 1..size {
        mass[node] = (0..node).map(|j| rates[(node, j)] * mass[j]).sum();
    }
    let total: f64 = mass.iter().sum();
    let mut perron = vec![0.0; product.nrows()];
    for (&node, mass) in recurrent.iter().zip(mass) {
        perron[node] = mass / total * product.nrows() as f64;
    }
    perron
}

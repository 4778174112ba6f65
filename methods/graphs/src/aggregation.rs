//! Aggregation of the parameters of a client's sources: weighted sums, in ascending order of clients.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::collaboration::PersonalWeights;
use crate::network::NetworkShape;

/// Errors of aggregating parameters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum AggregationError {
    /// The parameters of a client with weight are missing.
    #[error("the parameters of client {client}, which has weight, are missing")]
    Missing { client: usize },
    /// Parameters have the wrong length.
    #[error("client {client} has {found} parameters, not {expected}")]
    Length { client: usize, expected: usize, found: usize },
}

/// The next parameters of a client: coefficients of order `k >= 1` by the weights of that order, coefficients of order
/// 0 and the perceptron by those of all. Sums are in f64 and ascending by client, so that the same parameters give the
/// same bits wherever they are added. With all weight on itself a client keeps its own parameters to the bit.
///
/// # Errors
///
/// Parameters with weight that are missing, or of another length.
pub fn aggregate(
    shape: &NetworkShape,
    weights: PersonalWeights<'_>,
    parameters: &BTreeMap<usize, Vec<f32>>,
) -> Result<Vec<f32>, AggregationError> {
    let expected = shape.parameters();
    let sources = weights.sources();
    for &client in &sources {
        let found = parameters.get(&client).ok_or(AggregationError::Missing { client })?.len();
        if found != expected {
            return Err(AggregationError::Length { client, expected, found });
        }
    }
    let mut next = Vec::with_capacity(expected);
    let mut put = |range: std::ops::Range<usize>, weights: &[f64]| {
        let mut sums = vec![0.0_f64; range.len()];
        for client in sources.iter().filter(|&&client| weights[client] > 0.0) {
            let Some(theirs) = parameters.get(client) else { continue };
            let weight = weights[*client];
            sums.iter_mut().zip(&theirs[range.clone()]).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        }
        next.extend(sums.into_iter().map(|sum| sum as f32));
    };
    put(0..shape.features, weights.of_all());
    for order in 1..=shape.orders {
        put(order * shape.features..(order + 1) * shape.features, weights.of_order(order));
    }
    put(shape.coefficients()..expected, weights.of_all());
    Ok(next)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::collaboration::CollaborationGraph;

    const SHAPE: NetworkShape = NetworkShape { orders: 2, features: 3, hidden: 4, layers: 2, classes: 2 };

    fn parameters(clients: usize) -> BTreeMap<usize, Vec<f32>> {
        (0..clients).map(|client| (client, SHAPE.initial_parameters(client as u64 + 1))).collect()
    }

    #[test]
    fn all_weight_on_oneself_is_local_learning_and_equal_weights_are_federated_averaging_bit_for_bit() {
        let all = parameters(5);
        let local = CollaborationGraph::local(5, 2);
        let average = CollaborationGraph::average(&[1.0; 5], 2);
        for client in 0..5 {
            assert_eq!(aggregate(&SHAPE, local.of_client(client), &all).unwrap(), all[&client]);
            let mean: Vec<f32> = (0..SHAPE.parameters())
                .map(|at| all.values().fold(0.0, |sum, theirs| sum + 0.2 * f64::from(theirs[at])) as f32)
                .collect();
            assert_eq!(aggregate(&SHAPE, average.of_client(client), &all).unwrap(), mean);
        }
    }

    #[test]
    fn parameters_that_are_missing_or_do_not_fit_are_named() {
        let average = CollaborationGraph::average(&[1.0; 3], 2);
        let mut all = parameters(3);
        all.get_mut(&1).unwrap().pop();
        let expected = SHAPE.parameters();
        let refused = aggregate(&SHAPE, average.of_client(0), &all);
        assert_eq!(refused, Err(AggregationError::Length { client: 1, expected, found: expected - 1 }));
        all.remove(&1);
        assert_eq!(aggregate(&SHAPE, average.of_client(0), &all), Err(AggregationError::Missing { client: 1 }));
    }
}

//! The state of a client after some rounds, as bytes.

use serde::{Deserialize, Serialize};

use super::RecommenderClient;
use crate::error::RecommendError;
use crate::popularity::Popularity;

#[derive(Serialize, Deserialize)]
struct ClientState {
    values: Vec<f32>,
    squares: Vec<f32>,
    popularity: Popularity,
    mean_margin: f64,
    margin_of_all: Option<f64>,
    epochs: u64,
}

impl RecommenderClient {
    /// The learned state: another client with the same interactions and options continues from it bit for bit.
    ///
    /// # Errors
    /// [`RecommendError::Device`].
    pub fn state(&self) -> Result<Vec<u8>, RecommendError> {
        let (values, squares) = self.network.read()?;
        let state = ClientState {
            values,
            squares,
            popularity: self.popularity.clone(),
            mean_margin: self.mean_margin,
            margin_of_all: self.margin_of_all,
            epochs: self.epochs,
        };
        postcard::to_stdvec(&state).map_err(|error| no_state(&error.to_string()))
    }

    /// Restores a state.
    ///
    /// # Errors
    /// [`RecommendError::Bytes`]; the client is then unchanged.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), RecommendError> {
        let state: ClientState = postcard::from_bytes(bytes).map_err(|error| no_state(&error.to_string()))?;
        let count = self.shape.counts().0;
        let is_finite = state.values.iter().chain(&state.squares).all(|value| value.is_finite());
        if state.values.len() != count || state.squares.len() != count || !is_finite || !state.popularity.is_sound() {
            return Err(no_state(&format!("it is not of {count} finite parameters")));
        }
        self.network.fill(&state.values, &state.squares);
        self.popularity = state.popularity;
        self.mean_margin = state.mean_margin;
        self.margin_of_all = state.margin_of_all;
        self.epochs = state.epochs;
        Ok(())
    }
}

fn no_state(reason: &str) -> RecommendError {
    RecommendError::Bytes { what: "state of this client", reason: reason.to_owned() }
}

//! Plans as pictures (SVG) and for other programs (DOT, GraphML).
//!
//! ```text
//!   plan ── union of the period's links ── layout (circle or given places) ── picture ── SVG
//!                 links, classes              circle_order, layout            picture, legend, small multiples
//! ```
//!
//! Pure text: uses no font metrics, no clock and no file. The same plan gives the same text.

mod circle_order;
mod dot;
mod graphml;
mod labels;
mod layout;
mod legend;
mod palette;
mod picture;
mod shape;
mod small_multiples;
mod union;

pub use self::{dot::dot, graphml::graphml, picture::svg};

/// The most nodes an SVG shows.
pub const MAX_DRAWN_NODES: usize = 2_000;

/// The most different links an SVG shows.
pub const MAX_DRAWN_LINKS: usize = 20_000;

/// The places of the nodes in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum NodePlacement<'p> {
    /// On a circle, in an order with few crossings.
    #[default]
    Circle,
    /// At these places, one per node, `y` upwards; nodes that would cover each other are moved apart.
    Positions(&'p [[f64; 2]]),
}

/// The reason why there is no picture.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum DrawError {
    /// More nodes than [`MAX_DRAWN_NODES`] or more links than [`MAX_DRAWN_LINKS`].
    #[error(
        "{nodes} nodes and {links} links are too many for a picture: it shows at most {MAX_DRAWN_NODES} nodes and \
         {MAX_DRAWN_LINKS} links; DOT and GraphML take any number"
    )]
    TooLarge { nodes: usize, links: usize },
    /// The number of places is not that of the nodes.
    #[error("there are {positions} positions for {nodes} nodes: give one for each, in the order of the nodes")]
    PositionCount { positions: usize, nodes: usize },
    /// A place is not finite.
    #[error("the position of node {node} is not finite: give two finite numbers")]
    PositionNotFinite { node: usize },
}

impl NodePlacement<'_> {
    /// Checks the places.
    fn check(&self, nodes: usize) -> Result<(), DrawError> {
        let Self::Positions(places) = self else {
            return Ok(());
        };
        if places.len() != nodes {
            return Err(DrawError::PositionCount { positions: places.len(), nodes });
        }
        match places.iter().position(|place| !place.iter().all(|x| x.is_finite())) {
            Some(node) => Err(DrawError::PositionNotFinite { node }),
            None => Ok(()),
        }
    }
}

//! Ids of nodes in JSON, and edges between them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;

use crate::topology::TopologyError;
use crate::topology::builder::Builder;

/// Keys of an edge that are no attribute: `key` distinguishes several edges between two nodes, and `id` is the number
/// of an edge.
const NO_ATTRIBUTES: [&str; 2] = ["key", "id"];

/// The id of a node. A list of ids is one too, as in grids of networkx.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a node is named by a number, a string, or a list of these")]
pub(super) enum Id {
    Number(Number),
    Text(String),
    List(Vec<Self>),
}

impl Id {
    /// The id as a name; a list as Python prints it, `(0, 1)`.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::List(ids) => pair_text(ids),
        }
    }

    /// The place in the list of nodes that the id could be.
    fn place(&self, nodes: usize) -> Option<usize> {
        let Self::Number(number) = self else { return None };
        usize::try_from(number.as_u64()?).ok().filter(|&place| place < nodes)
    }
}

fn pair_text(ids: &[Id]) -> String {
    let ids: Vec<String> = ids.iter().map(Id::text).collect();
    format!("({})", ids.join(", "))
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an edge is [u, v], or an object with source and target")]
pub(super) enum Edge {
    Pair(Id, Id),
    WithAttributes(Id, Id, Option<BTreeMap<String, IgnoredAny>>),
    Object {
        #[serde(alias = "from")]
        source: Id,
        #[serde(alias = "to")]
        target: Id,
        #[serde(flatten)]
        attributes: BTreeMap<String, IgnoredAny>,
    },
}

impl Edge {
    fn ids(&self) -> [&Id; 2] {
        let (Self::Pair(u, v) | Self::WithAttributes(u, v, _) | Self::Object { source: u, target: v, .. }) = self;
        [u, v]
    }

    /// The names of its attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &str> {
        let attributes = match self {
            Self::Pair(..) => None,
            Self::WithAttributes(_, _, attributes) => attributes.as_ref(),
            Self::Object { attributes, .. } => Some(attributes),
        };
        let names = attributes.into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        names.filter(|name| !NO_ATTRIBUTES.contains(name))
    }

    /// The numbers of its ends, which it names by their places in the list of nodes or by their ids.
    pub(super) fn ends(&self, builder: &Builder, by_place: bool) -> Result<(usize, usize), TopologyError> {
        let nodes = builder.ids().len();
        let number = |id: &Id| match id.place(nodes).filter(|_| by_place) {
            Some(place) => Ok(place),
            None => builder.number(id.text()),
        };
        let [u, v] = self.ids();
        Ok((number(u)?, number(v)?))
    }
}

/// Returns `true` if the edges name their ends by places in the list of nodes, as D3 and networkx before 2.0 write
/// them: all are such places, and none is the id of a node.
pub(super) fn are_places(edges: &[Edge], builder: &Builder) -> bool {
    let nodes = builder.ids().len();
    let is_place = |id: &Id| id.place(nodes).is_some() && builder.number(id.text()).is_err();
    !edges.is_empty() && edges.iter().flat_map(Edge::ids).all(is_place)
}

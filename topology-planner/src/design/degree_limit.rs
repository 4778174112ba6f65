//! A topology in which no node has more neighbours than allowed.

use super::{DesignError, DesignRequest};
use crate::{minimum_degree_spanning_tree::minimum_degree_spanning_tree, topology::Topology};

impl DesignRequest<'_> {
    /// The topology of the request, with as many of its edges as the limit on receivers allows; interference stays the
    /// same. For designs that use edges both ways.
    ///
    /// A spanning tree of small degree comes first; then every edge that still fits, those whose ends have the smallest
    /// sum of degrees first.
    ///
    /// # Errors
    ///
    /// `DesignError::DegreeLimit` if the spanning tree needs more receivers than allowed; its degree is within one of
    /// the least possible.
    pub(super) fn degree_limited(&self) -> Result<Topology, DesignError> {
        let topology = self.topology;
        let degree = |node: usize| topology.neighbors(node).len();
        let largest = (0..topology.node_count()).map(degree).max().unwrap_or(0);
        let Some(limit) = self.options.max_out_degree.filter(|&limit| limit < largest) else {
            return Ok(topology.clone());
        };
        let mut edges = minimum_degree_spanning_tree(topology);
        let mut degrees = vec![0; topology.node_count()];
        let mut add = |&(u, v): &(usize, usize)| {
            degrees[u] += 1;
            degrees[v] += 1;
            degrees[u].max(degrees[v])
        };
        let needed = edges.iter().map(&mut add).max().unwrap_or(0);
        if needed > limit {
            return Err(DesignError::DegreeLimit { method: self.method, limit, needed });
        }
        edges.sort_unstable();
        let mut others: Vec<_> =
            topology.edges().iter().copied().filter(|edge| edges.binary_search(edge).is_err()).collect();
        others.sort_by_key(|&(u, v)| degree(u) + degree(v));
        for edge @ (u, v) in others {
            if degrees[u].max(degrees[v]) < limit {
                degrees[u] += 1;
                degrees[v] += 1;
                edges.push(edge);
            }
        }
        let limited = Topology::new(topology.names().to_vec(), &edges)?;
        Ok(limited.with_interference(topology.interference_edges().unwrap_or(topology.edges()))?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{DesignError, DesignOptions, Method, Topology, design::DesignRequest};

    fn limited(expression: &str, limit: usize) -> Result<(Topology, Topology), DesignError> {
        let topology = Topology::generate(expression).unwrap();
        let options = DesignOptions { max_out_degree: Some(limit), ..DesignOptions::default() };
        let order: Vec<usize> = (0..topology.node_count()).collect();
        let request = DesignRequest { topology: &topology, order: &order, method: Method::Matcha, options: &options };
        let limited = request.degree_limited()?;
        Ok((topology, limited))
    }

    #[test]
    fn limited_topologies_keep_the_limit_cannot_take_another_edge_and_interfere_as_before() {
        for (expression, limit) in [("rg:n=33,r=0.5,seed=1", 4), ("windmill:cliques=3,size=5", 3), ("complete:n=9", 2)]
        {
            let (base, limited) = limited(expression, limit).unwrap();
            let degree = |node: usize| limited.neighbors(node).len();
            assert!((0..base.node_count()).all(|node| degree(node) <= limit), "{expression}");
            for &(u, v) in base.edges() {
                let is_full = degree(u) == limit || degree(v) == limit;
                assert!(limited.has_edge(u, v) || is_full, "{expression}: {u} - {v} was left out");
            }
            assert!(limited.edges().iter().all(|&(u, v)| base.has_edge(u, v)), "{expression}");
            let nodes = 0..base.node_count();
            assert!(nodes.clone().all(|u| nodes.clone().all(|v| base.interferes(u, v) == limited.interferes(u, v))));
        }
    }

    #[test]
    fn a_limit_that_no_spanning_tree_keeps_is_refused_with_one_that_does() {
        let refused = limited("star:n=6", 4).unwrap_err();
        assert_eq!(refused, DesignError::DegreeLimit { method: Method::Matcha, limit: 4, needed: 5 });
        assert_eq!(limited("ring:n=6", 2).unwrap().1.edges().len(), 6);
    }
}

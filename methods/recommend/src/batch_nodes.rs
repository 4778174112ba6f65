//! The nodes of a batch: rows of other nodes need not be pooled.

/// Users and items of a batch, as nodes of its client's graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchNodes {
    /// The distinct nodes, ascending.
    pub(crate) nodes: Vec<u32>,
    /// The place of each user in `nodes`.
    pub(crate) users: Vec<u32>,
    /// The place of each item in `nodes`.
    pub(crate) items: Vec<u32>,
}

impl BatchNodes {
    pub(crate) fn of(users: &[u32], items: &[u32]) -> Self {
        let mut nodes = [users, items].concat();
        nodes.sort_unstable();
        nodes.dedup();
        let places = |of: &[u32]| of.iter().map(|node| nodes.partition_point(|other| other < node) as u32).collect();
        Self { users: places(users), items: places(items), nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_there_once_and_is_found_where_it_is_said_to_be() {
        let (users, items) = ([3, 0, 3, 2], [9, 7, 7, 12, 9, 5, 30, 7]);
        let found = BatchNodes::of(&users, &items);
        assert_eq!(found.nodes, [0, 2, 3, 5, 7, 9, 12, 30]);
        let read = |places: &[u32]| places.iter().map(|place| found.nodes[*place as usize]).collect::<Vec<_>>();
        assert_eq!((read(&found.users), read(&found.items)), (users.to_vec(), items.to_vec()));
    }
}

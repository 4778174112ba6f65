//! The books of all peers, joined into one ledger.

use std::collections::BTreeMap;
use std::path::Path;

use mingle_protocol::record::{LinkBreak, compare_links};
use mingle_protocol::{AuditReport, Books, Generation, NodeId};

use super::PlanNodes;
use super::peers::PeerRecords;
use crate::error::{Error, ErrorKind, Result};

/// Hexadecimal digits of a hash that distinguish plans for people.
const SHORT: usize = 8;

/// The ledger of one swarm: its nodes, the books on their disks, and their contradictions.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The ledger that all records belong to.
    pub(super) generation: Generation,
    /// The books found, by node.
    pub(super) books: BTreeMap<NodeId, Books>,
    /// Number of nodes of the swarm.
    pub(super) nodes: usize,
    /// Their names, if a plan was found.
    pub(super) names: Option<Vec<String>>,
    /// Distribution of the mass.
    pub(super) audit: AuditReport,
    /// Links whose two ends contradict each other.
    pub(super) breaks: Vec<LinkBreak>,
}

impl Ledger {
    /// Joins the books. They must belong to one generation and task, each of another node.
    pub(super) fn of(
        peers: &[PeerRecords],
        plan: Option<PlanNodes>,
        read_plan: impl Fn(&Path) -> Option<PlanNodes>,
    ) -> Result<Self> {
        let generation = one_generation(peers)?;
        let mut books: BTreeMap<NodeId, Books> = BTreeMap::new();
        for peer in peers {
            let Some(own) = &peer.books else {
                continue;
            };
            if books.insert(own.id, own.clone()).is_some() {
                return Err(twice(own.id, peers));
            }
        }
        if let Some(given) = plan.as_ref().filter(|given| given.plan_hash != generation.plan_hash) {
            let records = hex::encode(generation.plan_hash);
            let given = hex::encode(given.plan_hash);
            let message = format!("the records are of plan {records}, --plan is {given}");
            return Err(Error::new(ErrorKind::BadInput, message));
        }
        let names = plan.or_else(|| plan_in_homes(peers, &generation, read_plan)).map(|plan| plan.names);
        let nodes = names.as_ref().map_or_else(|| nodes_named(&books), Vec::len);
        let summaries: Vec<_> = books.iter().map(|(id, own)| (*id, own.ledger())).collect();
        let audit = mingle_protocol::audit(&summaries, nodes);
        let breaks = compare_links(&books);
        Ok(Self { generation, books, nodes, names, audit, breaks })
    }

    /// Mass in the outboxes of a node that its receivers, by their books, have not applied; in units.
    pub(super) fn in_flight_from(&self, id: NodeId) -> u128 {
        let Some(sender) = self.books.get(&id) else {
            return 0;
        };
        let applied_by = |to: &NodeId, life: u64| {
            let receiver = self.books.get(to).filter(|receiver| receiver.incarnation == life)?;
            let link = receiver.incoming.get(&id).filter(|link| link.sender_incarnation == sender.incarnation);
            Some(link.map_or(0, |link| link.applied))
        };
        let outstanding = sender.outgoing.iter().filter_map(|(to, link)| {
            let applied = applied_by(to, link.receiver_incarnation)?;
            Some(link.outbox.iter().filter(move |parcel| parcel.seq > applied))
        });
        outstanding.flatten().map(|parcel| u128::from(parcel.mass.units())).sum()
    }

    /// Mass sent to a node without books, which may have applied it; in units.
    pub(super) fn in_doubt_to(&self, id: NodeId) -> u128 {
        let links = self.books.values().filter_map(|sender| sender.outgoing.get(&id));
        links.flat_map(|link| &link.outbox).map(|parcel| u128::from(parcel.mass.units())).sum()
    }

    /// A node for people, with its name if it has one.
    pub(super) fn name(&self, id: NodeId) -> String {
        match self.names.as_ref().and_then(|names| names.get(id.index())) {
            Some(name) if *name != id.to_string() => format!("node {id} ({name})"),
            _ => format!("node {id}"),
        }
    }
}

/// The one generation of all books, which must also share one task.
fn one_generation(peers: &[PeerRecords]) -> Result<Generation> {
    let mut kinds: Vec<(&Books, Vec<String>)> = Vec::new();
    for peer in peers {
        let Some(own) = &peer.books else {
            continue;
        };
        let folder = peer.folder.display().to_string();
        let is_same = |books: &Books| books.generation == own.generation && books.task == own.task;
        match kinds.iter_mut().find(|(books, _)| is_same(books)) {
            Some((_, folders)) => folders.push(folder),
            None => kinds.push((own, vec![folder])),
        }
    }
    match &kinds[..] {
        [] => {
            let damage: Vec<&str> = peers.iter().filter_map(|peer| peer.damage.as_deref()).collect();
            Err(if damage.is_empty() {
                Error::new(ErrorKind::BadInput, "there is no record yet in any of these folders")
            } else {
                Error::new(ErrorKind::Integrity, format!("no record can be relied on: {}", damage.join("; ")))
            })
        }
        [(books, _)] => Ok(books.generation),
        several => {
            let kind = |(books, folders): &(&Books, Vec<String>)| {
                let Generation { counter, plan_hash } = books.generation;
                let [plan, task] = [plan_hash, books.task].map(|hash| hex::encode(hash)[..SHORT].to_owned());
                format!("generation {counter}, plan {plan}, task {task} in {}", folders.join(", "))
            };
            let kinds: Vec<String> = several.iter().map(kind).collect();
            Err(Error::new(
                ErrorKind::BadInput,
                format!("these are records of different ledgers: {}", kinds.join("; ")),
            )
            .hint("mass adds up within one generation of one swarm: name only the folders of one"))
        }
    }
}

fn twice(id: NodeId, peers: &[PeerRecords]) -> Error {
    let holds = |peer: &&PeerRecords| peer.books.as_ref().is_some_and(|books| books.id == id);
    let folders: Vec<String> = peers.iter().filter(holds).map(|peer| peer.folder.display().to_string()).collect();
    Error::new(ErrorKind::BadInput, format!("{} are all records of node {id}", folders.join(" and ")))
        .hint("name each peer once; two that are not copies of each other cannot both be right")
}

/// The plan of this generation, from the first home that has it.
fn plan_in_homes(
    peers: &[PeerRecords],
    generation: &Generation,
    read_plan: impl Fn(&Path) -> Option<PlanNodes>,
) -> Option<PlanNodes> {
    let homes = peers.iter().filter_map(|peer| peer.home.as_ref());
    let mut plans = homes.filter_map(|home| read_plan(&home.plan()));
    plans.find(|plan| plan.plan_hash == generation.plan_hash)
}

/// One more than the highest node that any record names. Nodes without a link in these books remain unknown.
fn nodes_named(books: &BTreeMap<NodeId, Books>) -> usize {
    let ends = books.iter().flat_map(|(id, own)| own.incoming.keys().chain(own.outgoing.keys()).chain([id]));
    ends.map(|id| id.index() + 1).max().unwrap_or(0)
}

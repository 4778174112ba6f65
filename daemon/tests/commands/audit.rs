//! `mingle audit`: the books of stopped peers, sound and with one thing wrong at a time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{assert_fails, run, stderr, stdout, text};
use mingle_protocol::record::SlotMap;
use mingle_protocol::{Books, Chain, Generation, Mass, NodeId, OutBooks, Owed, Payload, Record};
use serde_json::Value;

const ONE: u64 = 1 << 40;

/// Peers that pass mass around a directed ring, and commit each step to records as a peer does.
struct Swarm {
    root: tempfile::TempDir,
    peers: Vec<Peer>,
}

struct Peer {
    home: PathBuf,
    books: Books,
    slots: SlotMap,
}

impl Swarm {
    /// As many founders, each with a first record.
    fn new(nodes: u32) -> Self {
        let root = tempfile::tempdir().unwrap();
        let peer = |id: u32| Peer {
            home: root.path().join("peers").join(id.to_string()),
            slots: SlotMap::new(SlotMap::worst_case(1)),
            books: Books {
                number: 0,
                generation: Generation { counter: 0, plan_hash: [7; 32] },
                task: [8; 32],
                id: NodeId(id),
                incarnation: 1,
                brought: Mass::ONE,
                mass: Mass::ONE,
                step: 0,
                split_done: true,
                neighbours: BTreeMap::new(),
                incoming: BTreeMap::new(),
                outgoing: BTreeMap::new(),
                left: Vec::new(),
                evidence: BTreeMap::new(),
                host: Default::default(),
            },
        };
        let mut swarm = Self { peers: (0..nodes).map(peer).collect(), root };
        for node in 0..swarm.peers.len() {
            fs::create_dir_all(swarm.records(node)).unwrap();
            for slot in 0..SlotMap::worst_case(1) {
                fs::write(swarm.file(node, slot), [0; 4096]).unwrap();
            }
            swarm.commit(node);
        }
        swarm
    }

    /// Three peers with parcels of every kind: confirmed, applied but not confirmed, and in flight.
    fn busy() -> Self {
        let mut swarm = Self::new(3);
        for from in [0, 1, 2, 0, 1, 0] {
            swarm.split(from, ONE / 8);
        }
        swarm.take(0, 1);
        swarm.take(1, 2);
        swarm.take(2, 0);
        swarm.take(0, 1);
        swarm.confirm(0, 1, 1);
        swarm.confirm(1, 2, 1);
        swarm
    }

    fn records(&self, node: usize) -> PathBuf {
        self.peers[node].home.join("records")
    }

    fn file(&self, node: usize, slot: usize) -> PathBuf {
        self.records(node).join(format!("{slot:04}.record"))
    }

    /// Node `from` splits a parcel off for the next one in the ring, and commits it.
    fn split(&mut self, from: usize, units: u64) {
        let to = NodeId((from as u32 + 1) % self.peers.len() as u32);
        let books = &mut self.peers[from].books;
        books.step += 1;
        books.mass = books.mass.checked_sub(Mass::from_units(units)).unwrap();
        let first = OutBooks { receiver_incarnation: 1, next_seq: 1, ..OutBooks::default() };
        let link = books.outgoing.entry(to).or_insert(first);
        let before = link.outbox.last().map_or(link.acked_chain, |parcel| parcel.chain);
        let mass = Mass::from_units(units);
        let (seq, step, record) = (link.next_seq, books.step, books.number + 1);
        link.outbox.push(Owed { seq, step, mass, chain: next_chain(before, seq, mass), record });
        link.next_seq += 1;
        link.sent_total += u128::from(units);
        self.commit(from);
    }

    /// Node `to` applies the next parcel of node `from`, and commits it.
    fn take(&mut self, from: usize, to: usize) {
        let outbox = self.peers[from].books.outgoing[&NodeId(to as u32)].outbox.clone();
        let books = &mut self.peers[to].books;
        let link = books.incoming.entry(NodeId(from as u32)).or_default();
        let parcel = outbox.iter().find(|parcel| parcel.seq == link.applied + 1).unwrap();
        (link.sender_incarnation, link.applied, link.chain) = (1, parcel.seq, parcel.chain);
        link.last_step = Some(parcel.step);
        link.applied_total += u128::from(parcel.mass.units());
        books.mass = books.mass.checked_add(parcel.mass).unwrap();
        self.commit(to);
    }

    /// Node `from` learns that its parcels up to `acked` are durable at node `to`, and commits it.
    fn confirm(&mut self, from: usize, to: usize, acked: u64) {
        let link = self.peers[from].books.outgoing.get_mut(&NodeId(to as u32)).unwrap();
        while link.outbox.first().is_some_and(|parcel| parcel.seq <= acked) {
            let parcel = link.outbox.remove(0);
            (link.acked, link.acked_chain) = (parcel.seq, parcel.chain);
            link.acked_total += u128::from(parcel.mass.units());
        }
        self.commit(from);
    }

    /// Writes the next record of a node into a free slot.
    fn commit(&mut self, node: usize) {
        self.peers[node].books.number += 1;
        let books = self.peers[node].books.clone();
        let slot = self.peers[node].slots.claim(&books).unwrap();
        self.write(node, slot, books.clone());
        self.peers[node].slots.complete(slot, &books);
    }

    fn write(&self, node: usize, slot: usize, books: Books) {
        let numerator = [1.0, 2.0, books.number as f32];
        let payload = Some(Payload::new(&numerator).unwrap());
        let mut bytes = Vec::new();
        Record { books, numerator: numerator.into(), ratio: None, held_back: None, payload }
            .encode(&mut bytes)
            .unwrap();
        bytes.resize(4096, 0);
        fs::write(self.file(node, slot), bytes).unwrap();
    }

    /// The slot that holds this record of a node.
    fn slot_of(&self, node: usize, number: u64) -> usize {
        let holds = |slot: &usize| {
            let bytes = fs::read(self.file(node, *slot)).unwrap();
            Record::decode(&bytes).is_ok_and(|record| record.books.number == number)
        };
        (0..SlotMap::worst_case(1)).find(holds).unwrap()
    }

    /// Writes something else into the newest record of a node, with a checksum that is right.
    fn forge(&self, node: usize, change: impl Fn(&mut Books)) {
        let mut books = self.peers[node].books.clone();
        let slot = self.slot_of(node, books.number);
        change(&mut books);
        self.write(node, slot, books);
    }

    /// Changes one byte of a record of a node.
    fn spoil(&self, node: usize, number: u64) {
        let file = self.file(node, self.slot_of(node, number));
        let mut bytes = fs::read(&file).unwrap();
        bytes[100] ^= 1;
        fs::write(file, bytes).unwrap();
    }

    fn audit(&self, more: &[&str]) -> Output {
        let root = self.root.path();
        run(&[&["audit", text(root)], more].concat())
    }

    fn audit_json(&self) -> Value {
        let output = self.audit(&["--json"]);
        serde_json::from_str(&stdout(&output)).unwrap()
    }

    /// Asserts that an audit finds the books broken, with these words in its text and in its JSON.
    #[track_caller]
    fn assert_broken(&self, words: &[&str]) -> Value {
        assert_fails(&self.audit(&[]), 8, words);
        let output = self.audit(&["--json"]);
        assert_eq!(output.status.code(), Some(8));
        let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(object["verdict"], "broken");
        assert_eq!(object["error"]["code"], 8);
        for word in words {
            assert!(object["error"]["message"].as_str().unwrap().contains(word), "{word}: {object}");
        }
        object
    }
}

fn next_chain(before: Chain, seq: u64, mass: Mass) -> Chain {
    let bytes = [&before.0[..], &seq.to_le_bytes(), &mass.units().to_le_bytes()].concat();
    Chain(*blake3::hash(&bytes).as_bytes())
}

#[test]
fn the_weights_of_stopped_peers_and_their_parcels_in_flight_add_up_to_the_unit() {
    let swarm = Swarm::busy();
    let output = swarm.audit(&[]);
    let table = stdout(&output);
    assert!(output.status.success(), "{table}{}", stderr(&output));
    // Node 0 sent three eighths, of which two are applied, and has one from node 2.
    let expected =
        ["sum of weights: exactly 3 = 2.750000000 held + 0.250000000 in flight  (3298534883328 units of 2^-40)"];
    assert!(expected.iter().all(|line| table.lines().any(|found| found == *line)), "{table}");
    assert!(table.contains("3 nodes, as far as the records know"), "{table}");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    for (node, record, step, weight, in_flight) in
        [("0", "6", "3", "0.750000000", "0.125000000"), ("1", "6", "2", "1", "0.125000000"), ("2", "3", "1", "1", "0")]
    {
        let found = rows.iter().any(|row| row.starts_with(&[node, "1", record, step, weight, in_flight]));
        assert!(found, "node {node} in\n{table}");
    }
    let object = swarm.audit_json();
    assert_eq!((&object["schema"], &object["verdict"]), (&"mingle.audit/1".into(), &"exact".into()));
    assert_eq!(object["sum_units"], 3 * ONE);
    assert_eq!(object["expected_units"], 3 * ONE);
    let peers = object["peers"].as_array().unwrap();
    let units = |field: &str| peers.iter().map(|peer| peer[field].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(units("units"), [ONE / 4 * 3, ONE, ONE]);
    assert_eq!(units("in_flight_units"), [ONE / 8, ONE / 8, 0]);
    assert_eq!(object.get("error"), None);
}

#[test]
fn a_run_of_random_exchanges_stays_exact_after_every_commit() {
    let mut swarm = Swarm::new(3);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for turn in 0..30 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let from = (random >> 33) as usize % 3;
        let to = (from + 1) % 3;
        let link = swarm.peers[from].books.outgoing.get(&NodeId(to as u32)).cloned().unwrap_or_default();
        let applied = swarm.peers[to].books.incoming.get(&NodeId(from as u32)).map_or(0, |link| link.applied);
        match (random >> 40) % 3 {
            0 if link.outbox.len() < 4 => {
                let half = swarm.peers[from].books.mass.units() / 2;
                swarm.split(from, half);
            }
            1 if applied > link.acked => swarm.confirm(from, to, applied),
            _ if link.next_seq > applied + 1 => swarm.take(from, to),
            _ => continue,
        }
        if turn % 5 == 0 {
            let object = swarm.audit_json();
            assert_eq!((&object["verdict"], &object["sum_units"]), (&"exact".into(), &(3 * ONE).into()), "turn {turn}");
        }
    }
}

#[test]
fn a_unit_too_much_is_found_and_placed() {
    let swarm = Swarm::busy();
    swarm.forge(1, |books| books.mass = Mass::from_units(books.mass.units() + 1));
    let object = swarm.assert_broken(&["node 1 holds 1099511627777 units, but its books say 1099511627776"]);
    assert_eq!(object["sum_units"], 3 * ONE + 1);
}

#[test]
fn a_parcel_that_is_counted_as_applied_though_it_was_not_is_found() {
    let swarm = Swarm::busy();
    swarm.forge(1, |books| books.incoming.get_mut(&NodeId(0)).unwrap().applied += 1);
    let object =
        swarm.assert_broken(&["link 0 -> 1: node 1 applied", "the parcels up to 3 that node 1 applied are not"]);
    assert_eq!(object["breaks"][0]["fork"], serde_json::json!({ "from": 0, "to": 1, "seq": 3 }));
}

#[test]
fn other_parcels_of_the_same_weight_are_found_by_their_chain() {
    let swarm = Swarm::busy();
    swarm.forge(1, |books| books.incoming.get_mut(&NodeId(0)).unwrap().chain.0[5] ^= 1);
    swarm.assert_broken(&["link 0 -> 1: the parcels up to 2 that node 1 applied are not those of node 0"]);
    let swarm = Swarm::busy();
    swarm.forge(1, |books| books.outgoing.get_mut(&NodeId(2)).unwrap().acked_chain.0[0] ^= 1);
    swarm.assert_broken(&["link 1 -> 2: the parcels up to 1"]);
}

#[test]
fn a_write_that_was_cut_off_before_anybody_was_told_of_it_does_not_count() {
    let mut swarm = Swarm::busy();
    swarm.split(0, 77);
    swarm.spoil(0, 7);
    let output = swarm.audit(&[]);
    let table = stdout(&output);
    assert!(output.status.success(), "{table}{}", stderr(&output));
    assert!(table.contains("exactly 3") && table.contains("holds a write that was cut off"), "{table}");
}

#[test]
fn a_record_that_others_have_seen_and_that_is_gone_is_found() {
    // Node 1 has confirmed the third parcel: its newest record is durable, and then the disk loses it.
    let mut swarm = Swarm::busy();
    swarm.take(0, 1);
    swarm.confirm(0, 1, 3);
    swarm.spoil(1, 7);
    swarm.assert_broken(&["node 1 confirmed parcel 3, but has applied them up to 2 only: its record is not its last"]);
    // A sender whose records were put back has not sent what the other has applied.
    let mut swarm = Swarm::busy();
    let before = fs::read(swarm.file(1, swarm.slot_of(1, 6))).unwrap();
    swarm.split(1, 5);
    swarm.take(1, 2);
    swarm.take(1, 2);
    swarm.spoil(1, 7);
    swarm.assert_broken(&["node 2 has applied parcel 3, but node 1 would send 3 next: its record is not its last"]);
    assert_eq!(before, fs::read(swarm.file(1, swarm.slot_of(1, 6))).unwrap(), "the older record was still there");
}

#[test]
fn a_slot_that_holds_a_payload_that_is_owed_is_missed() {
    let swarm = Swarm::busy();
    // Node 0 owes the payloads of its second and third parcel.
    let owed: Vec<u64> = swarm.peers[0].books.owed_records().into_iter().collect();
    let slot = swarm.slot_of(0, owed[0]);
    fs::remove_file(swarm.file(0, slot)).unwrap();
    let file = format!("{slot:04}.record");
    let object = swarm.assert_broken(&["parcel 2 to node 1", &format!("unreadable: slot {slot}"), &file, "peers/0"]);
    assert_eq!(object["sum_units"], 3 * ONE, "its weight is still in the books");
    assert!(object["damage"][0]["folder"].as_str().unwrap().ends_with("peers/0"));
}

#[test]
fn more_damage_than_a_crash_does_is_said_and_the_others_tell_what_is_gone() {
    let mut swarm = Swarm::busy();
    swarm.confirm(2, 0, 1);
    swarm.spoil(2, 1);
    swarm.spoil(2, 2);
    let object = swarm.assert_broken(&["peers/2", "slots 0 and 1 cannot be read", "the checksum is wrong"]);
    assert_eq!((&object["missing"][0]["node"], object["audit"]["held"].as_u64()), (&2.into(), Some(ONE / 4 * 7)));
}

#[test]
fn what_missing_peers_hold_is_told_by_the_books_of_the_others() {
    let swarm = Swarm::busy();
    let homes = [0, 1].map(|node| text(&swarm.peers[node].home).to_owned());
    let output = run(&["audit", &homes[0], &homes[1]]);
    let table = stdout(&output);
    assert!(output.status.success(), "{table}{}", stderr(&output));
    // Node 2 brought one, confirmed an eighth and has sent one; another eighth is on the way to it.
    let told =
        "node 2: its records are missing. By its neighbours' books it holds 1, and 0.125000000 more is on the way";
    assert!(table.contains(told) && table.contains("the books agree"), "{table}");
    let output = run(&["audit", "--json", &homes[0], &homes[1]]);
    let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(object["verdict"], "incomplete");
    let missing = serde_json::json!([{ "node": 2, "name": null, "held_units": ONE, "in_doubt_units": ONE / 8 }]);
    assert_eq!(object["missing"], missing);
    // One peer alone.
    let alone = stdout(&run(&["audit", &homes[0]]));
    assert!(alone.contains("only what they hold together is certain"), "{alone}");
}

#[test]
fn records_of_different_ledgers_are_not_added_up() {
    let swarm = Swarm::busy();
    swarm.forge(2, |books| books.generation.counter = 1);
    assert_fails(
        &swarm.audit(&[]),
        4,
        &["different ledgers", "generation 0", "generation 1, plan 07070707", "peers/2"],
    );
    swarm.forge(2, |books| books.generation.plan_hash = [9; 32]);
    assert_fails(&swarm.audit(&[]), 4, &["different ledgers", "plan 07070707", "plan 09090909"]);
    swarm.forge(2, |books| books.task = [1; 32]);
    assert_fails(&swarm.audit(&[]), 4, &["different ledgers", "task 08080808", "task 01010101"]);
    swarm.forge(2, |books| {
        (books.id, books.incoming, books.outgoing) = (NodeId(1), BTreeMap::new(), BTreeMap::new());
    });
    assert_fails(&swarm.audit(&[]), 4, &["peers/1", "peers/2", "all records of node 1"]);
}

#[test]
fn a_running_process_is_left_alone() {
    let swarm = Swarm::busy();
    let lock = File::create(swarm.peers[1].home.join("lock")).unwrap();
    assert!(swarm.audit(&[]).status.success(), "a lock that nobody holds is no obstacle");
    lock.lock().unwrap();
    assert_fails(&swarm.audit(&[]), 6, &["a mingle process runs in", "peers/1", "hint: stop it"]);
    assert_fails(&run(&["audit", text(&swarm.records(1))]), 6, &["a mingle process runs in", "peers/1"]);
    let output = swarm.audit(&["--json"]);
    let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(object["error"]["kind"], "refused");
}

#[test]
fn peers_are_found_by_their_homes_by_their_records_and_by_the_folder_around_them() {
    let swarm = Swarm::busy();
    let homes: Vec<&str> = swarm.peers.iter().map(|peer| text(&peer.home)).collect();
    let records: Vec<PathBuf> = (0..3).map(|node| swarm.records(node)).collect();
    let records: Vec<&str> = records.iter().map(|folder| text(folder)).collect();
    let peers = swarm.root.path().join("peers");
    let all = [vec![text(swarm.root.path())], vec![text(&peers)], homes.clone(), records.clone()];
    for folders in all.iter().chain(&[[&homes[..], &records, &[text(&peers)]].concat()]) {
        let output = run(&[&["audit"], &folders[..]].concat());
        assert!(stdout(&output).contains("exactly 3"), "{folders:?}: {}", stderr(&output));
    }
    // A peer that never came to write a record is named.
    let silent = peers.join("3");
    fs::create_dir(&silent).unwrap();
    fs::write(silent.join("identity.key"), "").unwrap();
    let table = stdout(&swarm.audit(&[]));
    assert!(table.contains("peers/3: no record was ever completed there") && table.contains("exactly 3"), "{table}");
}

#[test]
fn folders_without_records_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_fails(&run(&["audit", text(folder.path())]), 4, &["neither the home of a peer", "--home DIR"]);
    assert_fails(&run(&["audit", text(&folder.path().join("nothing"))]), 4, &["nothing"]);
    assert_fails(&run(&["audit"]), 2, &["<DIR>"]);
    fs::create_dir(folder.path().join("records")).unwrap();
    assert_fails(&run(&["audit", text(folder.path())]), 4, &["no record yet"]);
    fs::write(folder.path().join("records/0000.record"), "poetry, not mass").unwrap();
    fs::write(folder.path().join("records/0001.record"), "more of it").unwrap();
    assert_fails(&run(&["audit", text(folder.path())]), 8, &["no record can be relied on", "slots 0 and 1"]);
}

#[test]
fn the_plan_says_how_many_nodes_there_are_and_what_they_are_called() {
    let swarm = Swarm::busy();
    let plan = |topology: &str| -> (PathBuf, [u8; 32]) {
        let edges = swarm.root.path().join("edges");
        fs::write(&edges, topology).unwrap();
        let path = swarm.root.path().join(format!("{}.json", topology.len()));
        assert!(run(&["plan", "make", "--topology", text(&edges), "-o", text(&path)]).status.success());
        let checked: Value = serde_json::from_str(&stdout(&run(&["plan", "check", "--json", text(&path)]))).unwrap();
        (path, hash_of(checked["hash"].as_str().unwrap()))
    };
    let (three, hash) = plan("ana ben\nben cho\ncho ana\n");
    let (four, _) = plan("ana ben\nben cho\ncho ana\ncho dan\n");
    assert_fails(&swarm.audit(&["--plan", text(&three)]), 4, &["the records are of plan 0707", "--plan is"]);
    for node in 0..3 {
        swarm.forge(node, |books| {
            books.generation.plan_hash = hash;
        });
    }
    // The payloads that are owed are in older records, of the other plan: a node that changes it owes nothing any more.
    swarm.assert_broken(&["and that is gone"]);
    let mut swarm = Swarm { root: swarm.root, ..Swarm::new(3) };
    for (node, peer) in swarm.peers.iter_mut().enumerate() {
        peer.home = swarm.root.path().join("peers").join(node.to_string());
        peer.books.generation.plan_hash = hash;
    }
    for node in 0..3 {
        swarm.commit(node);
    }
    let table = stdout(&swarm.audit(&["--plan", text(&three)]));
    assert!(table.contains("  3 nodes\n") && ["ana", "ben", "cho"].iter().all(|name| table.contains(name)), "{table}");
    // The home of one of them has it as well.
    fs::copy(&three, swarm.peers[2].home.join("plan.json")).unwrap();
    assert_eq!(stdout(&swarm.audit(&[])), table);
    assert_fails(&swarm.audit(&["--plan", text(&four)]), 4, &["--plan is"]);
    let one = stdout(&run(&["audit", "--plan", text(&three), text(&swarm.peers[0].home)]));
    assert!(one.contains("node 1 (ben): its records are missing") && one.contains("node 2 (cho)"), "{one}");
}

fn hash_of(digits: &str) -> [u8; 32] {
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(byte)
}

#[test]
fn an_audit_changes_nothing() {
    let swarm = Swarm::busy();
    let files = |folder: &Path| {
        let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap_or_default()))
            .collect();
        files.sort();
        files
    };
    let all =
        || (0..3).flat_map(|node| [files(&swarm.records(node)), files(&swarm.peers[node].home)]).collect::<Vec<_>>();
    let before = all();
    assert!(swarm.audit(&[]).status.success());
    assert_eq!(before, all());
}

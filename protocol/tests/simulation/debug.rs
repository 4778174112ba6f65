use crate::support::*;
use mingle_protocol::sim::*;
use mingle_protocol::*;
#[test]
fn debug_partition() {
    let config = averaging(random_plan(6, 10, 0), 6, 4_000);
    let mut swarm = Swarm::new(config).unwrap();
    for a in 0..3 {
        for b in 3..6 {
            swarm.at(Time::from_millis(200), Fault::LinkDown(NodeId(a), NodeId(b)));
            swarm.at(Time::from_millis(20_000), Fault::LinkUp(NodeId(a), NodeId(b)));
        }
    }
    println!("{:?}", swarm.run_until_drained(HOUR));
    for id in ids(6) { let n = swarm.node(id).unwrap(); println!("{id} {:?} step {} w {} susp {:?} missing {:?}", n.state(), n.step(), n.w(), n.suspended_neighbours(), n.missing_neighbours()); }
    for (t, id, e) in swarm.events().iter().filter(|(_, _, e)| !matches!(e, Event::RoundFinished(_))).take(100) { println!("{t} {id} {e:?}"); }
    for (id, l) in swarm.books() { println!("{id} {l:?}"); }
}

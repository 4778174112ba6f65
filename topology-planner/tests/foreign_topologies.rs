//! Topologies as networkx, igraph, D3 and the Topology Zoo write them.

#![allow(clippy::unwrap_used)]

use mingle_planner::topology::{TopologyFormat, TopologyReading};
use mingle_planner::{Topology, TopologyError};

fn read(text: &str) -> TopologyReading {
    Topology::read(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refusal(text: &str) -> String {
    Topology::parse(text).unwrap_err().to_string()
}

fn attributes(reading: &TopologyReading) -> (usize, String) {
    (reading.edge_attributes.edges(), reading.edge_attributes.to_string())
}

#[test]
fn edge_lists_are_read_with_attributes_or_weights_and_say_which_they_leave_out() {
    let path = Topology::parse("0 1\n1 2\n").unwrap();
    for (text, edges, names) in [
        ("0 1 {}\n1 2 {}\n", 0, ""),
        ("0\t1\t{}\n1\t2\t{}\n", 0, ""),
        ("0,1,{}\r\n1,2,{}\r\n", 0, ""),
        ("#/usr/bin/export\n# GMT {x}\n0 1 {'weight': 2.5}\n1 2 {} # {none}\n", 1, "weight"),
        ("0 1 {'weight': 3, 'road': 'A #7: b'}\n1 2 {\"it's\": 1}\n", 2, "it's, road, weight"),
        ("0 1 2.5\n1 2 1e-3\n", 2, "weight"),
        ("0 1 1\n1 2 1\n", 2, "weight"),
        ("source,target\n0,1\n1,2\n", 0, ""),
        ("From,To,Weight\n0,1,4\n1,2,7\n", 2, "weight"),
    ] {
        let reading = read(text);
        assert_eq!((&reading.topology, reading.format), (&path, TopologyFormat::EdgeList), "{text}");
        assert_eq!(attributes(&reading), (edges, names.to_owned()), "{text}");
    }
    // Nodes may be called as columns are.
    assert_eq!(read("source target\ntarget b\n").topology.names(), ["source", "target", "b"]);
    assert_eq!(read("u v\n").topology.names(), ["u", "v"]);
}

#[test]
fn an_edge_list_with_more_than_edges_is_refused_with_its_line() {
    for (text, line) in [
        ("a b 1\nb c\n", 2),
        ("a b 1\nb c red\n", 2),
        ("a b 1 2\n", 1),
        ("a b {'weight': 3\n", 1),
        ("a b {} c\n", 1),
        ("a {}\n", 1),
        ("a b ->\n", 1),
    ] {
        assert!(matches!(Topology::parse(text), Err(TopologyError::EdgeList { line: at, .. }) if at == line), "{text}");
    }
    let neighbors = "# by node\n0 1 2\n1 2 0\n2 0 1\n";
    assert!(
        refusal(neighbors).starts_with("line 2: \"0 1 2\" could be an edge with a weight"),
        "{}",
        refusal(neighbors)
    );
}

#[test]
fn node_link_data_are_read_whatever_their_edges_are_called() {
    for key in ["edges", "links"] {
        let text = format!(
            r#"{{"directed": false, "multigraph": true, "graph": {{"name": "x"}},
                "nodes": [{{"id": 5, "Longitude": 6.9, "Latitude": 50.9}}, {{"id": "b", "Internal": 1}}, {{"y": 3, "x": 2, "id": 7}}],
                "{key}": [{{"source": 5, "target": "b", "key": 0, "weight": 2.5}}, {{"source": "b", "target": 7, "key": 0}}]}}"#
        );
        let reading = read(&text);
        assert_eq!(
            (reading.topology.names(), reading.topology.edges()),
            (&["5", "b", "7"].map(String::from)[..], &[(0, 1), (1, 2)][..])
        );
        assert_eq!((attributes(&reading), reading.placed), ((1, "weight".to_owned()), 2));
        assert_eq!(reading.topology.positions().unwrap()[0], [6.9, 50.9]);
    }
    let broken = refusal("{\"nodes\": [0, 1],\n\"links\": [{\"source\": 0}]}");
    assert!(broken.starts_with("line 2, column") && broken.contains("source and target"), "{broken}");
    assert!(refusal(r#"{"nodes": [0, 1], "links": 3}"#).starts_with("line 1, column"));
    assert!(refusal(r#"{"nodes": [0, 1], "links": [{"source": 0, "target": 2}]}"#).starts_with("an edge names \"2\""));
    let directed = r#"{"directed": true, "nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]}"#;
    assert!(refusal(directed).starts_with("\"0\" reaches \"1\" but not"), "{}", refusal(directed));
}

/// A GML text with a header, comments, labels that are references, repeated or missing, places in two forms, and lists
/// within lists.
const GML: &str = "Creator \"a # [ b\"\n# huts\nVersion \"1.0\"\ngraph [\n  directed 0\n  Network \"x\"
  node [ id 3 label \"K\u{f6}ln &amp; Bonn\" Longitude 6.9 Latitude 50.9 ]
  node [\n id 4 label \"None\" graphics [ x 8.5 y 50 w 2 ] ]\n node [ label \"Ulm\"\n id 9 more [ id 8 label \"no\" ] ]
  edge [ source 3 target 4 id \"e1\" LinkLabel \"10 Gbps\" ]\n edge [ target 4 source 9 key 0 ]\n]\n";

#[test]
fn gml_is_read_with_labels_and_places() {
    let reading = read(GML);
    assert_eq!(reading.format, TopologyFormat::Gml);
    assert_eq!(reading.topology.names(), ["K\u{f6}ln & Bonn", "4", "Ulm"]);
    assert_eq!(reading.topology.edges(), [(0, 1), (1, 2)]);
    assert_eq!(reading.topology.positions().unwrap(), [[6.9, 50.9], [8.5, 50.0], [8.5, 50.0]]);
    assert_eq!((attributes(&reading), reading.named_by_label, reading.placed), ((1, "LinkLabel".to_owned()), 2, 2));
    let directed = "graph [ directed 1 node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ]";
    assert!(refusal(&format!("{directed} ]")).starts_with("\"0\" reaches \"1\" but not"));
    assert_eq!(read(&format!("{directed} edge [ source 1 target 0 ] ]")).topology.edges(), [(0, 1)]);
}

#[test]
fn broken_gml_is_refused_with_its_line() {
    let deep = format!("graph [ {}", "a [ ".repeat(40));
    for (text, message) in [
        ("graph [\n node [ id 1 ]\n node [ label \"x\" ]\n]", "line 3: the node has no id"),
        ("graph [\n node [ id 1 ]\n edge [ source 1 ]\n]", "line 3: the edge has no source, or no target"),
        ("graph [\n node [ id 1 ]\n", "line 3: the text ends before"),
        ("graph [\n node [ id 1 ] ] ]", "line 2: a ] without its ["),
        ("graph [ node [ id ]", "line 1: id has no value"),
        ("graph [ node [ id", "line 1: id has no value"),
        ("graph [ \"a\" 1 ]", "line 1: a value without a key"),
        ("graph [ node [ id 1\n label \"x ] ]", "line 2: the text in quotes does not end"),
        ("graph [ ]\ngraph [ ]", "line 2: a second graph"),
        (&deep, "line 1: lists are nested too deeply"),
        ("graph [ node [ id 1 ] node [ id 1 ] ]", "two nodes are called \"1\""),
        ("graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", "an edge names \"2\""),
        ("graph [ ]", "the topology is empty"),
    ] {
        let refused = refusal(text);
        assert!(refused.starts_with(message), "{text}: {refused}");
    }
}

#[test]
fn gml_that_ends_in_the_middle_is_refused() {
    let graph = GML.find("graph [").unwrap() + "graph [".len();
    for end in (graph..GML.trim_end().len()).filter(|&end| GML.is_char_boundary(end)) {
        assert!(matches!(Topology::read(&GML[..end]), Err(TopologyError::Gml { .. })), "{}", &GML[..end]);
    }
}

#[test]
fn labels_and_places_of_graphml_are_those_of_its_nodes() {
    let text = r#"<graphml><key attr.name="label" for="edge" id="d9"/><key attr.name="Longitude" for="node" id="d1"/>
        <key attr.name="label" for="node" id="d2"/><key attr.name="Latitude" for="node" id="d3"/>
        <graph edgedefault="undirected"><data key="d2">a network</data>
        <node id="0"><data key="d1">13.5</data><data key="d3">52.5</data><data key="d2">North &amp; <![CDATA[S&D]]></data></node>
        <node id="1"><data key="d2">None</data></node>
        <node id="2"><data key="d2">None</data><data key="d1">8</data><data key="d3">50</data></node>
        <edge source="0" target="1"><data key="d9">2 Gbps</data><data key="d10">7</data></edge><edge source="1" target="2"/>
        <data key="d2">after</data></graph></graphml>"#;
    let reading = read(text);
    assert_eq!(reading.format, TopologyFormat::GraphMl);
    assert_eq!(reading.topology.names(), ["North & S&D", "1", "2"]);
    assert_eq!(reading.topology.positions().unwrap(), [[13.5, 52.5], [10.75, 51.25], [8.0, 50.0]]);
    assert_eq!((attributes(&reading), reading.named_by_label, reading.placed), ((1, "d10, label".to_owned()), 1, 2));
}

#[test]
fn places_of_less_than_half_of_the_nodes_are_not_used() {
    let reading = read(r#"{"nodes": [{"id": 0, "x": 1, "y": 2}, 1, 2], "edges": [[0, 1], [1, 2]]}"#);
    assert_eq!((reading.placed, reading.topology.positions()), (1, None));
    let reading = read(r#"{"nodes": [{"id": 0, "x": "nan", "y": 2}, 1], "edges": [[0, 1]]}"#);
    assert_eq!((reading.placed, reading.topology.positions()), (0, None));
}

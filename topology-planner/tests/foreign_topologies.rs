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
        ("From,To,Weight\n0,1,4\n1,2,7\n", 2, "Weight"),
    ] {
        let reading = read(text);
        assert_eq!((&reading.topology, reading.format), (&path, TopologyFormat::EdgeList), "{text}");
        assert_eq!(attributes(&reading), (edges, names.to_owned()), "{text}");
    }
    // Nodes may be called as columns are.
    assert_eq!(read("source target\ntarget b\n").topology.names(), ["source", "target", "b"]);
    assert_eq!(read("u -> v\nv -> u\n").topology.names(), ["u", "v"]);
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
    assert!(refusal(&format!("{directed} ]")).starts_with("line 1: \"0\" reaches \"1\" but not"));
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
        ("graph [ node [ id 1 ] node [ id 1 ] ]", "line 1: two nodes are called \"1\""),
        ("graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", "line 1: an edge names \"2\""),
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

#[test]
fn tables_of_edges_are_read_with_any_separator_quotes_and_named_columns() {
    let triangle = Topology::parse("a b\nb c\nc a\n").unwrap();
    for (text, edges, names) in [
        ("source;target\na;b\nb;c\nc;a\n", 0, ""),
        ("a|b\r\nb|c\r\nc|a\r\n", 0, ""),
        ("\"source\",\"target\"\n\"a\",\"b\"\n\"b\",\"c\"\n\"c\",\"a\"\n", 0, ""),
        ("'a' 'b'\n'b' 'c'\n'c' 'a'\n", 0, ""),
        (",source,target,weight\n0,a,b,1.5\n1,b,c,2\n2,c,a,\n", 2, "weight"),
        (
            "Source,Target,Type,Id,Label,Weight\na,b,Undirected,0,,1\nb,c,Undirected,1,,1\nc,a,Undirected,2,,1\n",
            3,
            "Weight",
        ),
        ("From Node;Weight;To Node\na;10 Gbps;b\nb;40 Gbps;c\nc;1 Gbps;a\n", 3, "Weight"),
        ("node1\tnode2\ttype\na\tb\tfiber\nb\tc\tfiber\nc\ta\tradio\n", 3, "type"),
        ("% sym unweighted\na b\nb c\nc a\n", 0, ""),
        ("// written by hand\na;b;1.5\nb;c;2\nc;a;3\n", 3, "weight"),
    ] {
        let reading = read(text);
        assert_eq!((&reading.topology, reading.format), (&triangle, TopologyFormat::EdgeList), "{text}");
        assert_eq!(attributes(&reading), (edges, names.to_owned()), "{text}");
    }
    let directed = "Source;Target;Type\na;b;Directed\nb;a;Directed\n";
    assert_eq!(read(directed).topology.edges(), [(0, 1)]);
    let one_way = refusal("Source;Target;Type\na;b;Directed\nb;c;Undirected\n");
    assert!(one_way.starts_with("line 2: \"a\" reaches \"b\" but not the other way round"), "{one_way}");
}

#[test]
fn quotes_and_parentheses_hold_names_together() {
    let names = |text: &str| read(text).topology.names().to_vec();
    assert_eq!(names("\"New York\" Boston\nBoston \"Los Angeles\"\n"), ["New York", "Boston", "Los Angeles"]);
    assert_eq!(names("\"Bonn, DE\",\"Ulm #1\"\n\"Ulm #1\",\"R\"\"om\" # x\n"), ["Bonn, DE", "Ulm #1", "R\"om"]);
    assert_eq!(names("New York\tBoston\nBoston\tLos Angeles\n"), ["New York", "Boston", "Los Angeles"]);
    assert_eq!(names("(0, 0) (0, 1) {}\n(0, 1) (1, 1) {'weight': 2}\n"), ["(0, 0)", "(0, 1)", "(1, 1)"]);
    assert_eq!(names("O'Brien 't-Hooft\n't-Hooft b's\n"), ["O'Brien", "'t-Hooft", "b's"]);
    for open in ["\"a b\nb c\n", "a,\"b\nb,c\n"] {
        assert!(refusal(open).starts_with("line 1: "), "{}", refusal(open));
    }
}

#[test]
fn edge_lists_that_can_be_read_in_two_ways_or_lack_names_are_refused_with_their_line() {
    for (text, message) in [
        ("a b\t0.5\nb c\t1\n", "line 1: \"a b\\t0.5\" has blanks and other separators"),
        ("n|1 n|2\nn|2 n|3\n", "line 1: \"n|1 n|2\" has blanks and other separators"),
        ("a b 0,5\nb c 1,5\n", "line 1: \"a b 0,5\" could have a number with a decimal comma"),
        ("a,,b\nb,,c\n", "line 1: \"a,,b\" is not an edge"),
        ("a,,b\nb,c\n", "line 1: \"a,,b\" is not an edge"),
        (",source,target\n0,,a\n1,a,b\n", "line 2: \"0,,a\" has nothing in the column `source`"),
        ("source,target\n", "line 1: \"source,target\" names columns, and there is no edge below it"),
        ("source target\n", "line 1: \"source target\" names columns, and there is no edge below it: rename the nodes"),
        ("# nodes\nFromNodeId\tToNodeId\n\n", "line 2: \"FromNodeId\\tToNodeId\" names columns"),
        ("u v\n", "line 1: \"u v\" names columns"),
        ("source,target,source\na,b,c\n", "line 1: \"source,target,source\" has two columns `source`"),
        ("city,other,road\na,b,A7\nb,c,A8\n", "line 1: \"city,other,road\" names no columns `source` and `target`"),
        ("city,other\na,b\nb,c\n", "line 1: \"city,other\" joins two nodes that no other line names"),
        ("source target\na b c\n", "line 2: \"a b c\" has 3 cells, and there are 2 columns"),
        ("Source,Target,Type\na,b,Directed\nb,a,Nonsense\n", "line 3: \"b,a,Nonsense\" has a type that is neither"),
        ("0,1,1\n1,0,0\n1,0,0\n", "line 1: \"0,1,1\" looks like the first line of an adjacency matrix"),
        (
            "0 1 1 0\n1 0 0 0\n1 0 0 1\n0 0 1 0\n",
            "line 1: \"0 1 1 0\" looks like the first line of an adjacency matrix",
        ),
        (",a,b\na,0,1\nb,1,0\n", "line 1: \",a,b\" looks like the first line of an adjacency matrix"),
        ("a b\nb b\n", "line 2: node \"b\" has an edge to itself"),
        ("a -> b\nb -> a\nb -> c\n", "line 3: \"b\" reaches \"c\" but not the other way round"),
    ] {
        let refused = refusal(text);
        assert!(refused.starts_with(message), "{text}: {refused}");
    }
}

#[test]
fn adjacency_data_and_graphs_of_cytoscape_are_read() {
    let adjacency = |directed: bool, last: &str| {
        format!(
            r#"{{"directed": {directed}, "multigraph": false, "graph": [], "nodes": [{{"id": 0, "label": "a"}}, {{"id": 1}}, {{"id": "c"}}],
                "adjacency": [[{{"id": 1, "weight": 2}}], [{{"id": 0, "weight": 2}}, {{"id": "c", "key": 0}}], {last}]}}"#
        )
    };
    let reading = read(&adjacency(false, r#"[{"id": 1}]"#));
    assert_eq!(
        (reading.topology.names(), reading.topology.edges()),
        (&["a", "1", "c"].map(String::from)[..], &[(0, 1), (1, 2)][..])
    );
    assert_eq!(attributes(&reading), (1, "weight".to_owned()));
    assert!(refusal(&adjacency(true, "[]")).starts_with("\"1\" reaches \"c\" but not"));
    assert!(refusal(&adjacency(false, r#"[{"id": 7}]"#)).starts_with("an edge names \"7\""));
    let short = r#"{"nodes": [{"id": 0}, {"id": 1}], "adjacency": [[{"id": 1}]]}"#;
    assert!(refusal(short).contains("has 1 lists of neighbours for 2 nodes"), "{}", refusal(short));

    let nodes = r#"{"data": {"id": "0", "value": 0, "name": "North"}, "position": {"x": 1, "y": 2}}, {"data": {"id": "1"}, "position": {"x": 3, "y": 4}}"#;
    let edge = r#"{"data": {"id": "e", "source": 0, "target": "1", "weight": 3}}"#;
    for text in [
        format!(r#"{{"data": [], "directed": false, "elements": {{"nodes": [{nodes}], "edges": [{edge}]}}}}"#),
        format!(r#"{{"elements": [{nodes}, {edge}]}}"#),
        format!("[{edge}, {nodes}]"),
    ] {
        let reading = read(&text);
        assert_eq!(
            (reading.topology.names(), reading.topology.edges()),
            (&["North", "1"].map(String::from)[..], &[(0, 1)][..])
        );
        assert_eq!(reading.topology.positions().unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(attributes(&reading), (1, "weight".to_owned()));
    }
    assert!(
        refusal(&format!(r#"[{nodes}, {{"data": {{"source": "0", "target": "9"}}}}]"#))
            .starts_with("an edge names \"9\"")
    );
    assert!(refusal("[1, 2]").contains("the JSON is a list"), "{}", refusal("[1, 2]"));
}

#[test]
fn json_of_python_d3_and_vis_is_read_and_nothing_of_it_is_left_out() {
    let names = |text: &str| read(text).topology.names().to_vec();
    // Grids of networkx have pairs as ids, and Python writes numbers that JSON does not have.
    let grid = r#"{"nodes": [{"id": [0, 0]}, {"id": [0, 1]}], "edges": [{"source": [0, 0], "target": [0, 1], "weight": NaN}]}"#;
    assert_eq!(names(grid), ["(0, 0)", "(0, 1)"]);
    assert_eq!(attributes(&read(grid)), (1, "weight".to_owned()));
    assert_eq!(names(r#"{"nodes": [{"id": -1}, {"id": 1.5}], "edges": [[-1, 1.5, {"a": 1}]]}"#), ["-1", "1.5"]);
    assert_eq!(names(r#"{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"from": 1, "to": 2}]}"#), ["1", "2"]);
    // Edges by places in the list of nodes.
    let by_place = read(
        r#"{"nodes": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "links": [{"source": 0, "target": 1}, {"source": 2, "target": 1}]}"#,
    );
    assert_eq!(
        (by_place.topology.names(), by_place.topology.edges()),
        (&["a", "b", "c"].map(String::from)[..], &[(0, 1), (1, 2)][..])
    );
    assert!(
        refusal(r#"{"nodes": [{"id": 1}, {"id": 5}], "links": [{"source": 0, "target": 1}]}"#)
            .starts_with("an edge names \"0\"")
    );
    let both = |edges: &str| format!(r#"{{"nodes": [0, 1, 2], "edges": {edges}, "links": [[0, 1], [1, 2]]}}"#);
    assert_eq!(read(&both("[]")).topology.edges().len(), 2);
    assert!(refusal(&both("[[0, 1], [1, 2]]")).contains("keep one of the lists"));
    let no_id = refusal("{\"nodes\": [{\"id\": 0},\n {\"id\": null, \"label\": {\"id\": 1}}, true], \"edges\": []}");
    assert!(
        no_id.starts_with("line 2, column") && no_id.contains("a node is a number, a string, or an object"),
        "{no_id}"
    );
}

#[test]
fn labels_and_places_of_yed_are_those_of_its_nodes() {
    let text = r#"<graphml xmlns:y="http://www.yworks.com/xml/graphml"><key for="node" id="d6" yfiles.type="nodegraphics"/>
        <graph edgedefault="undirected"><node id="n0"><data key="d6"><y:ShapeNode><y:Geometry height="30" x="10" y="20.5"/>
        <y:NodeLabel alignment="center">Alice &amp; Bob</y:NodeLabel></y:ShapeNode></data></node>
        <node id="n1"><data key="d6"><y:ShapeNode><y:Geometry x="1" y="2"/></y:ShapeNode></data></node>
        <edge source="n0" target="n1"><data key="d10"><y:PolyLineEdge/></data></edge></graph></graphml>"#;
    let reading = read(text);
    assert_eq!(reading.topology.names(), ["Alice & Bob", "n1"]);
    assert_eq!(reading.topology.positions().unwrap(), [[10.0, 20.5], [1.0, 2.0]]);
}

#[test]
fn formats_that_are_not_read_are_named_with_a_way_out() {
    for (text, name) in [
        ("*Vertices 2\n1 \"A\"\n2 \"B\"\n*Edges\n1 2\n", "Pajek"),
        ("graph G {\n a -- b;\n}\n", "Graphviz"),
        ("digraph {\n a -> b;\n}\n", "Graphviz"),
        ("strict graph\n{\n a -- b;\n}\n", "Graphviz"),
        ("graph { a -- b }\n", "Graphviz"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", "Matrix Market"),
        (">>graph6<<Bw\n", "graph6"),
        ("dl n=2 format = edgelist1\ndata:\n1 2\n", "UCINET"),
        ("<?xml version=\"1.0\"?>\n<gexf><graph defaultedgetype=\"undirected\"/></gexf>", "GEXF"),
    ] {
        let refused = refusal(text);
        assert!(refused.starts_with("it looks like ") && refused.contains(name), "{text}: {refused}");
    }
    assert_eq!(read("graph digraph {'weight': 1}\n").topology.names(), ["graph", "digraph"]);
}

#[test]
fn mutated_topologies_are_refused_or_read_whole() {
    let seeds = [
        ",Source,Target,Type,\"a \"\"b\"\"\"\n0,\"a, b\",c,Undirected,1\n1,c,'d',Directed,\n2,d,c,directed,\n",
        "\"a b\" (0, 1) {}\n(0, 1) 'c d' # near\n",
        "a;b;1.5\nb;\u{e9} \u{1f600};2\n",
        r#"{"directed": true, "nodes": [{"id": [0, 1]}, {"id": -1.5}], "adjacency": [[{"id": -1.5, "w": NaN}], [{"id": [0, 1]}]]}"#,
        r#"{"elements": {"nodes": [{"data": {"id": "0"}}, {"data": {"id": 1}}], "edges": [{"data": {"source": 0, "target": 1}}]}}"#,
        r#"{"nodes": [{"name": "a"}, {"name": "b"}], "links": [{"source": 0, "target": 1}]}"#,
    ]
    .map(|seed| seed.as_bytes().to_vec());
    assert!(seeds.iter().all(|seed| Topology::read(std::str::from_utf8(seed).unwrap()).is_ok()));
    mingle_mutations::for_each_input("topology_text", &seeds, |input| {
        let Ok(reading) = Topology::read(&String::from_utf8_lossy(input)) else { return };
        let topology = reading.topology;
        assert!(topology.edges().windows(2).all(|pair| pair[0] < pair[1]));
        assert!(topology.edges().iter().all(|&(u, v)| u < v && v < topology.node_count()));
    });
}

#[test]
fn parallel_edges_count_once_and_are_counted() {
    for (text, repeated) in [
        ("0 1\n1 2\n", 0),
        ("0 1\n1 0\n1 2\n0 1\n", 2),
        ("0 -> 1\n1 -> 0\n", 0),
        ("0 -> 1\n1 -> 0\n0 -> 1\n", 1),
        (
            r#"{"multigraph": true, "nodes": [0, 1], "edges": [{"source": 0, "target": 1, "key": 0}, {"source": 0, "target": 1, "key": 1}]}"#,
            1,
        ),
        (r#"{"nodes": [{"id": 0}, {"id": 1}], "adjacency": [[{"id": 1}], [{"id": 0}]]}"#, 0),
        ("graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] edge [ source 1 target 0 ] ]", 1),
    ] {
        assert_eq!(read(text).repeated, repeated, "{text}");
    }
}

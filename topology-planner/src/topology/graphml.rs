//! GraphML: `<node id>` and `<edge source target>` of the graph, with the `<data>` that a `<key>` names: labels and
//! coordinates of nodes, and the names of the attributes of edges.

use std::collections::BTreeMap;

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

use super::TopologyError;
use super::builder::Builder;
use super::reading::{TopologyFormat, TopologyReading};

/// Reads the graph of a GraphML document.
pub(super) fn read(text: &str) -> Result<TopologyReading, TopologyError> {
    let mut reader = Reader::from_str(text);
    let mut graph = GraphReader::default();
    let mut open = 0_usize;
    let mut place = TextPosition::start(text);
    loop {
        place = place.moved_to(reader.buffer_position());
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                open += 1;
                graph.element(&element, &place)?;
            }
            Ok(Event::Empty(element)) => {
                graph.element(&element, &place)?;
                graph.end(element.local_name().as_ref());
            }
            Ok(Event::End(element)) => {
                open -= 1; // the reader refuses ends without a start
                graph.end(element.local_name().as_ref());
            }
            Ok(Event::Text(words)) => graph.text(&String::from_utf8_lossy(&words)),
            Ok(Event::CData(words)) => graph.text(&String::from_utf8_lossy(&words)),
            Ok(Event::GeneralRef(name)) => graph.text(&referenced(&String::from_utf8_lossy(&name))),
            Ok(Event::Eof) if open > 0 => {
                return Err(place.error("the text ends before the last element is closed"));
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                return Err(TextPosition::start(text).moved_to(reader.error_position()).error(error.to_string()));
            }
        }
    }
    graph.finish(&TextPosition::start(text))
}

#[derive(Default)]
struct GraphReader {
    builder: Builder,
    /// Edges with their lines and ends; `true` for one direction.
    edges: Vec<(usize, [String; 2], bool)>,
    directed: bool,
    graphs: usize,
    /// The names of attributes, by their keys.
    names: BTreeMap<String, String>,
    inside: Inside,
    /// The key and the text of the data that are being read.
    data: Option<(String, String)>,
    /// The label of yEd that is being read.
    label: Option<String>,
    /// The keys of the edge that is being read.
    edge_keys: Vec<String>,
}

/// The element whose data are being read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    #[default]
    Graph,
    Node(usize),
    Edge,
}

impl GraphReader {
    fn element(&mut self, element: &BytesStart<'_>, place: &TextPosition<'_>) -> Result<(), TopologyError> {
        match element.local_name().as_ref() {
            b"graph" => {
                self.graphs += 1;
                if self.graphs > 1 {
                    return Err(place.error("a second <graph>: keep one graph in the file"));
                }
                self.directed = match place.attribute(element, "edgedefault")?.as_deref() {
                    Some("directed") => true,
                    Some("undirected") => false,
                    _ => {
                        return Err(place.error("<graph> must say edgedefault=\"undirected\" or \"directed\""));
                    }
                };
            }
            b"node" => {
                let id = place.required(element, "id")?;
                self.builder.at_line(place.line);
                self.inside = Inside::Node(self.builder.add_node(&id)?);
            }
            b"key" => {
                let name = place.attribute(element, "attr.name")?;
                if let (Some(id), Some(name)) = (place.attribute(element, "id")?, name) {
                    self.names.insert(id, name);
                }
            }
            b"data" if self.inside != Inside::Graph => {
                self.data = place.attribute(element, "key")?.map(|key| (key, String::new()));
            }
            b"edge" => {
                let ends = [place.required(element, "source")?, place.required(element, "target")?];
                let one_way = match place.attribute(element, "directed")?.as_deref() {
                    Some("true") => true,
                    Some("false") => false,
                    Some(_) => return Err(place.error("directed must be \"true\" or \"false\"")),
                    None => self.directed,
                };
                self.edges.push((place.line, ends, one_way));
                self.inside = Inside::Edge;
            }
            b"gexf" => {
                return Err(TopologyError::Foreign {
                    format: "GEXF of Gephi",
                    way_out: "export GraphML there, or write networkx.write_graphml(networkx.read_gexf(FILE), ...)",
                });
            }
            // yEd keeps labels and places in elements of its own.
            b"NodeLabel" => self.label = Some(String::new()),
            b"Geometry" => self.geometry(element, place)?,
            b"hyperedge" => {
                return Err(place.error("<hyperedge> is not an edge between two nodes: write <edge>"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the place of a node of yEd.
    fn geometry(&mut self, element: &BytesStart<'_>, place: &TextPosition<'_>) -> Result<(), TopologyError> {
        let Inside::Node(node) = self.inside else { return Ok(()) };
        for axis in ["x", "y"] {
            let value = place.attribute(element, axis)?.unwrap_or_default();
            self.builder.describe(node, axis, &value);
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if let Some(label) = &mut self.label {
            label.push_str(text);
        } else if let Some((_, data)) = &mut self.data {
            data.push_str(text);
        }
    }

    fn end(&mut self, element: &[u8]) {
        match element {
            b"node" => self.inside = Inside::Graph,
            b"edge" => {
                self.inside = Inside::Graph;
                let names = &self.names;
                let named = |key: &String| names.get(key).map_or(key.clone(), String::clone);
                let keys: Vec<String> = self.edge_keys.drain(..).map(|key| named(&key)).collect();
                self.builder.note_attributes(keys.iter().map(String::as_str));
            }
            b"data" => self.end_data(),
            b"NodeLabel" => {
                if let (Some(label), Inside::Node(node)) = (self.label.take(), self.inside) {
                    self.builder.describe(node, "label", &label);
                }
            }
            _ => {}
        }
    }

    fn end_data(&mut self) {
        let Some((key, text)) = self.data.take() else { return };
        match self.inside {
            Inside::Graph => {}
            Inside::Edge => self.edge_keys.push(key),
            Inside::Node(node) => {
                if let Some(name) = self.names.get(&key) {
                    self.builder.describe(node, name, &text);
                }
            }
        }
    }

    fn finish(mut self, place: &TextPosition<'_>) -> Result<TopologyReading, TopologyError> {
        if self.graphs == 0 {
            return Err(place.error("there is no <graph>: this XML is not GraphML"));
        }
        for (line, [source, target], one_way) in self.edges {
            self.builder.at_line(line);
            let ends = (self.builder.number(source)?, self.builder.number(target)?);
            self.builder.link(ends, one_way)?;
        }
        self.builder.finish(TopologyFormat::GraphMl)
    }
}

/// The text that a reference such as `&amp;` stands for.
fn referenced(name: &str) -> String {
    let reference = format!("&{name};");
    quick_xml::escape::unescape(&reference).map(Into::into).unwrap_or(reference)
}

/// A position in the document, for messages.
struct TextPosition<'t> {
    text: &'t str,
    offset: usize,
    /// The line, from 1.
    line: usize,
}

impl<'t> TextPosition<'t> {
    fn start(text: &'t str) -> Self {
        Self { text, offset: 0, line: 1 }
    }

    /// The position `offset` bytes from the start, which is not before this one.
    fn moved_to(self, offset: u64) -> Self {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX).clamp(self.offset, self.text.len());
        let passed = &self.text.as_bytes()[self.offset..offset];
        let lines = passed.iter().filter(|&&byte| byte == b'\n').count();
        Self { text: self.text, offset, line: self.line + lines }
    }

    fn error(&self, message: impl Into<String>) -> TopologyError {
        TopologyError::GraphMl { line: self.line, message: message.into() }
    }

    fn required(&self, element: &BytesStart<'_>, name: &str) -> Result<String, TopologyError> {
        let value = self.attribute(element, name)?;
        let tag = String::from_utf8_lossy(element.local_name().as_ref()).into_owned();
        value.ok_or_else(|| self.error(format!("<{tag}> has no {name}")))
    }

    fn attribute(&self, element: &BytesStart<'_>, name: &str) -> Result<Option<String>, TopologyError> {
        let found = element.try_get_attribute(name).map_err(|error| self.error(error.to_string()))?;
        let Some(attribute) = found else {
            return Ok(None);
        };
        match attribute.normalized_value(XmlVersion::Implicit1_0) {
            Ok(value) => Ok(Some(value.into_owned())),
            Err(error) => Err(self.error(error.to_string())),
        }
    }
}

//! GraphML: `<node id>` and `<edge source target>` of the first graph; a data key named `label` names the nodes.

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{Builder, Topology, TopologyError};

/// Reads the graph of a GraphML document.
pub(super) fn read(text: &str) -> Result<Topology, TopologyError> {
    let mut reader = Reader::from_str(text);
    let mut graph = GraphReader::default();
    let mut open = 0_usize;
    loop {
        let place = Place { text, offset: reader.buffer_position() };
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                open += 1;
                graph.element(&element, &place)?;
            }
            Ok(Event::Empty(element)) => graph.element(&element, &place)?,
            Ok(Event::End(_)) => open -= 1, // the reader refuses ends without a start
            Ok(Event::Eof) if open > 0 => {
                return Err(place.error("the text ends before the last element is closed"));
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                return Err(Place { text, offset: reader.error_position() }.error(error.to_string()));
            }
        }
    }
    graph.finish(&Place { text, offset: 0 })
}

#[derive(Default)]
struct GraphReader {
    builder: Builder,
    edges: Vec<(String, String, bool)>,
    directed: bool,
    graphs: usize,
}

impl GraphReader {
    fn element(&mut self, element: &BytesStart<'_>, place: &Place<'_>) -> Result<(), TopologyError> {
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
                self.builder.add_node(&id)?;
            }
            b"edge" => {
                let ends = (place.required(element, "source")?, place.required(element, "target")?);
                let one_way = match place.attribute(element, "directed")?.as_deref() {
                    Some("true") => true,
                    Some("false") => false,
                    Some(_) => return Err(place.error("directed must be \"true\" or \"false\"")),
                    None => self.directed,
                };
                self.edges.push((ends.0, ends.1, one_way));
            }
            b"hyperedge" => {
                return Err(place.error("<hyperedge> is not an edge between two nodes: write <edge>"));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self, place: &Place<'_>) -> Result<Topology, TopologyError> {
        if self.graphs == 0 {
            return Err(place.error("there is no <graph>: this XML is not GraphML"));
        }
        for (source, target, one_way) in self.edges {
            let mut ends = [0; 2];
            for (end, id) in ends.iter_mut().zip([source, target]) {
                *end = *self.builder.numbers.get(&id).ok_or(TopologyError::UnknownNode { id })?;
            }
            let list = if one_way { &mut self.builder.one_way } else { &mut self.builder.edges };
            list.push((ends[0], ends[1]));
        }
        self.builder.finish()
    }
}

/// Where in the document we are, for messages.
struct Place<'t> {
    text: &'t str,
    offset: u64,
}

impl Place<'_> {
    fn error(&self, message: impl Into<String>) -> TopologyError {
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX).min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        TopologyError::GraphMl { line, message: message.into() }
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
        match attribute.unescape_value() {
            Ok(value) => Ok(Some(value.into_owned())),
            Err(error) => Err(self.error(error.to_string())),
        }
    }
}

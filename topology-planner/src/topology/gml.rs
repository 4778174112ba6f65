//! GML, as networkx, igraph and the Topology Zoo write it:
//! `graph [ node [ id 0 label "North" ] edge [ source 0 target 1 ] ]`.
//!
//! Himsolt, "GML: A portable Graph File Format", University of Passau, 1997. A text is a list of keys and values; a
//! value is a number, a text in quotes, or a list in brackets. Unknown keys are ignored.

mod tokens;

use self::tokens::{GmlTokens, Token};
use super::TopologyError;
use super::builder::Builder;
use super::reading::{TopologyFormat, TopologyReading};

/// The most levels of lists within lists.
const MAX_DEPTH: usize = 32;

/// Number of words searched for `graph [`: a header and a comment may precede it.
const LOOKED_AT: usize = 4096;

/// Returns `true` for a text written like GML.
pub(super) fn looks_like(text: &str) -> bool {
    let mut before = "";
    for word in text.split_whitespace().take(LOOKED_AT) {
        if (before == "graph" && word.starts_with('[')) || word == "graph[" {
            return true;
        }
        before = word;
    }
    false
}

/// Reads the graph of a GML text.
pub(super) fn read(text: &str) -> Result<TopologyReading, TopologyError> {
    let mut reader = GmlReader::default();
    let mut tokens = GmlTokens::new(text);
    while let Some(token) = tokens.next()? {
        match token {
            Token::Close => reader.close(&tokens)?,
            Token::Word(key) => {
                let value = tokens.next()?;
                reader.value(key, value.as_ref(), &tokens)?;
            }
            Token::Open | Token::Quoted(_) => return Err(tokens.error("a value without a key")),
        }
    }
    if !reader.open.is_empty() {
        return Err(tokens.error("the text ends before the last [ is closed"));
    }
    reader.finish()
}

/// The part of the graph that has been read.
#[derive(Default)]
struct GmlReader<'t> {
    builder: Builder,
    /// The keys of the lists that are open.
    open: Vec<&'t str>,
    has_graph: bool,
    directed: bool,
    node: OpenNode,
    edge: [Option<String>; 2],
    edges: Vec<(usize, [String; 2])>,
    edge_keys: Vec<&'t str>,
}

/// A node whose list is open.
#[derive(Default)]
struct OpenNode {
    id: Option<String>,
    attributes: Vec<(String, String)>,
}

impl<'t> GmlReader<'t> {
    fn value(&mut self, key: &'t str, value: Option<&Token<'t>>, tokens: &GmlTokens<'t>) -> Result<(), TopologyError> {
        match value {
            None | Some(Token::Close) => Err(tokens.error(format!("{key} has no value"))),
            Some(Token::Open) => self.open(key, tokens),
            Some(Token::Word(value)) => {
                self.scalar(key, value);
                Ok(())
            }
            Some(Token::Quoted(value)) => {
                let plain = quick_xml::escape::unescape(value).unwrap_or((*value).into());
                self.scalar(key, &plain);
                Ok(())
            }
        }
    }

    fn open(&mut self, key: &'t str, tokens: &GmlTokens<'t>) -> Result<(), TopologyError> {
        match (&self.open[..], key) {
            ([], "graph") if self.has_graph => return Err(tokens.error("a second graph: keep one graph in the file")),
            ([], "graph") => self.has_graph = true,
            (["graph"], "node") => self.node = OpenNode::default(),
            (["graph"], "edge") => {
                self.edge = [None, None];
                self.edge_keys.clear();
            }
            _ => {}
        }
        self.open.push(key);
        if self.open.len() > MAX_DEPTH { Err(tokens.error("lists are nested too deeply")) } else { Ok(()) }
    }

    fn close(&mut self, tokens: &GmlTokens<'t>) -> Result<(), TopologyError> {
        let closed = self.open.pop().ok_or_else(|| tokens.error("a ] without its ["))?;
        if self.open != ["graph"] {
            return Ok(());
        }
        match closed {
            "node" => self.close_node(tokens),
            "edge" => self.close_edge(tokens),
            _ => Ok(()),
        }
    }

    fn close_node(&mut self, tokens: &GmlTokens<'t>) -> Result<(), TopologyError> {
        let OpenNode { id, attributes } = std::mem::take(&mut self.node);
        let id = id.ok_or_else(|| tokens.error("the node has no id"))?;
        self.builder.at_line(tokens.line());
        let number = self.builder.add_node(&id)?;
        for (attribute, value) in attributes {
            self.builder.describe(number, &attribute, &value);
        }
        Ok(())
    }

    fn close_edge(&mut self, tokens: &GmlTokens<'t>) -> Result<(), TopologyError> {
        let [Some(source), Some(target)] = std::mem::take(&mut self.edge) else {
            return Err(tokens.error("the edge has no source, or no target"));
        };
        self.edges.push((tokens.line(), [source, target]));
        self.builder.note_attributes(self.edge_keys.drain(..));
        Ok(())
    }

    fn scalar(&mut self, key: &'t str, value: &str) {
        match (&self.open[..], key) {
            (["graph"], "directed") => self.directed = value == "1",
            (["graph", "node"], "id") => self.node.id = Some(value.to_owned()),
            (["graph", "node"], _) | (["graph", "node", "graphics"], "x" | "y") => {
                self.node.attributes.push((key.to_owned(), value.to_owned()));
            }
            (["graph", "edge"], "source") => self.edge[0] = Some(value.to_owned()),
            (["graph", "edge"], "target") => self.edge[1] = Some(value.to_owned()),
            (["graph", "edge"], "id" | "key") => {}
            (["graph", "edge"], _) => self.edge_keys.push(key),
            _ => {}
        }
    }

    fn finish(mut self) -> Result<TopologyReading, TopologyError> {
        for (line, [source, target]) in std::mem::take(&mut self.edges) {
            self.builder.at_line(line);
            let ends = (self.builder.number(source)?, self.builder.number(target)?);
            self.builder.link(ends, self.directed)?;
        }
        self.builder.finish(TopologyFormat::Gml)
    }
}

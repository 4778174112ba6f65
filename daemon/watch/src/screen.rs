//! The layout of the dashboard: a header, two charts, the neighbours, the last events.

use mingle_peer::status::{LinkState, Status};
use mingle_peer::training::MetricDirection;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, LegendPosition, Paragraph};

use crate::status_lines::{summary, table};
use crate::view::{Curve, View};

/// The most lines of neighbours; the charts get the rest.
const MOST_NEIGHBOURS: u16 = 12;
/// The fewest lines of charts and of events, with their frames.
const LEAST_CHART: u16 = 6;
const LEAST_EVENTS: u16 = 4;
const MOST_EVENTS: u16 = 8;
/// The width or height that a frame takes.
const FRAME: u16 = 2;

/// Draws the whole dashboard.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let summary = summary_lines(view, frame.area().width);
    let header_height = u16::try_from(summary.len()).unwrap_or(u16::MAX).saturating_add(FRAME);
    let neighbours = view.status.as_ref().map_or(0, |status| status.neighbours.len());
    let taken = header_height.saturating_add(LEAST_CHART + LEAST_EVENTS + FRAME + 1);
    let room = frame.area().height.saturating_sub(taken);
    let shown = u16::try_from(neighbours).unwrap_or(u16::MAX).min(MOST_NEIGHBOURS).min(room);
    let [header, charts, table, events] = Layout::vertical([
        Constraint::Length(header_height),
        Constraint::Min(LEAST_CHART),
        Constraint::Length(shown + FRAME + 1),
        Constraint::Length((LEAST_EVENTS + (room - shown) / 4).min(MOST_EVENTS)),
    ])
    .areas(frame.area());
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(charts);
    draw_header(frame, header, view, summary);
    draw_learning(frame, left, view);
    draw_disagreement(frame, right, view);
    draw_neighbours(frame, table, view.status.as_ref());
    draw_events(frame, events, view);
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, view: &View, lines: Vec<String>) {
    let title = match (&view.status, view.has_ended) {
        (Some(status), false) => format!(" mingle  {} ", status.peer),
        (Some(status), true) => format!(" mingle  {}  (ended) ", status.peer),
        (None, _) => " mingle ".to_owned(),
    };
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    let block = Block::bordered().title(title).title_bottom(Line::from(" q quits ").right_aligned());
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// The summary, with lines broken between their parts where they are wider than the terminal.
fn summary_lines(view: &View, width: u16) -> Vec<String> {
    let Some(status) = &view.status else { return vec!["waiting for the first snapshot".to_owned()] };
    let room = usize::from(width.saturating_sub(FRAME));
    let mut lines = Vec::new();
    for line in summary(status) {
        let mut rest = String::new();
        for part in line.split("  ") {
            if !rest.is_empty() && rest.chars().count() + 2 + part.chars().count() > room {
                lines.push(std::mem::take(&mut rest));
            }
            rest += if rest.is_empty() { "" } else { "  " };
            rest += part;
        }
        lines.push(rest);
    }
    lines
}

fn draw_learning(frame: &mut Frame<'_>, area: Rect, view: &View) {
    // All fit one scale: those above 1 are drawn as shares of their largest value.
    let scaled: Vec<(String, Curve)> = view.metrics.iter().map(|(name, values)| to_one(name, values)).collect();
    let colours = [Color::Green, Color::Yellow, Color::Magenta, Color::Blue];
    let datasets = scaled.iter().zip(colours).map(|((name, values), colour)| curve(name.clone(), colour, values));
    let y = Axis::default().bounds([0.0, 1.0]).labels(["0", "0.5", "1"]);
    // Between accuracy and loss, whose curves end at the top and at the bottom.
    let legend = LegendPosition::Right;
    let first = scaled.first().map(|(_, values)| values.clone()).unwrap_or_default();
    draw_chart(frame, area, " the model on held-out samples ", datasets.collect(), (&first, y, legend));
}

/// A curve scaled to at most 1 and its name, with an arrow in the better direction, such as `loss ↓ / 2.30`.
fn to_one(name: &str, values: &Curve) -> (String, Curve) {
    let better = match MetricDirection::of(name) {
        Some(MetricDirection::Max) => " ↑",
        Some(MetricDirection::Min) => " ↓",
        None => "",
    };
    let name = format!("{name}{better}");
    let most = values.iter().map(|point| point.1.abs()).fold(0.0_f64, f64::max);
    if most <= 1.0 {
        return (name, values.clone());
    }
    (format!("{name} / {most:.2}"), values.iter().map(|(round, value)| (*round, value / most)).collect())
}

fn draw_disagreement(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let values = || view.disagreement.iter().map(|point| point.1);
    let low = values().fold(f64::INFINITY, f64::min).floor();
    let high = values().fold(f64::NEG_INFINITY, f64::max).ceil();
    let (low, high) = if low < high { (low, high) } else { (-2.0, 0.0) };
    let forecast: Curve = clipped(&view.forecast(), low);
    let datasets = vec![
        curve("mixing alone, by the plan".to_owned(), Color::DarkGray, &forecast),
        curve("measured".to_owned(), Color::Cyan, &view.disagreement),
    ];
    // Adding zero removes the sign of a negative zero.
    let y = Axis::default().bounds([low, high]).labels([low, high].map(|power| format!("1e{:.0}", power + 0.0)));
    let legend = LegendPosition::TopRight;
    draw_chart(frame, area, " disagreement with neighbours ", datasets, (&view.disagreement, y, legend));
}

fn curve(name: String, color: Color, points: &Curve) -> Dataset<'_> {
    Dataset::default()
        .name(name)
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(color))
        .data(points)
}

fn draw_chart(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    datasets: Vec<Dataset<'_>>,
    (rounds, y, legend): (&Curve, Axis<'_>, LegendPosition),
) {
    let first = rounds.first().map_or(0.0, |point| point.0);
    let last = rounds.last().map_or(first + 1.0, |point| point.0.max(first + 1.0));
    let x = Axis::default().bounds([first, last]).labels([format!("round {first:.0}"), format!("{last:.0}")]);
    let chart = Chart::new(datasets)
        .block(Block::bordered().title(title))
        .legend_position(Some(legend))
        .hidden_legend_constraints((Constraint::Ratio(2, 3), Constraint::Ratio(1, 2)))
        .x_axis(x)
        .y_axis(y);
    frame.render_widget(chart, area);
}

/// A falling line of two points, clipped at the lower edge of the picture.
fn clipped(line: &Curve, low: f64) -> Curve {
    match line[..] {
        [first, last] if last.1 < low && first.1 > low => {
            let share = (first.1 - low) / (first.1 - last.1);
            vec![first, (first.0 + share * (last.0 - first.0), low)]
        }
        _ => line.clone(),
    }
}

fn draw_neighbours(frame: &mut Frame<'_>, area: Rect, status: Option<&Status>) {
    let Some(status) = status else { return frame.render_widget(Block::bordered().title(" neighbours "), area) };
    let block = Block::bordered().title(neighbours_title(status.neighbours.len(), area.height));
    let mut rows = table(&status.neighbours).into_iter();
    let heading = rows.next().map(|row| Line::styled(row, Style::new().add_modifier(Modifier::BOLD)));
    let rows = rows.zip(&status.neighbours);
    let rows = rows.map(|(row, neighbour)| Line::styled(row, Style::new().fg(colour_of(neighbour.state))));
    frame.render_widget(Paragraph::new(heading.into_iter().chain(rows).collect::<Vec<_>>()).block(block), area);
}

fn colour_of(state: LinkState) -> Color {
    match state {
        LinkState::Up => Color::Reset,
        LinkState::Suspended => Color::Yellow,
        LinkState::Down => Color::Red,
        LinkState::Left => Color::DarkGray,
    }
}

/// The title of the neighbours, with their number where not all can be shown.
fn neighbours_title(neighbours: usize, height: u16) -> String {
    let shown = usize::from(height.saturating_sub(FRAME + 1));
    if neighbours <= shown {
        return " neighbours ".to_owned();
    }
    format!(" neighbours: {shown} of {neighbours}, all with mingle peers ")
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let room = usize::from(area.height.saturating_sub(2));
    let from = view.events.len().saturating_sub(room);
    let lines: Vec<Line<'_>> = view.events.iter().skip(from).map(|text| Line::from(text.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" events ")), area);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_peer::status::{
        Contraction, Evaluated, NeighbourStatus, OutgoingLink, PeerState, PlanFacts, WeightAccount,
    };
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn text(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let cells = terminal.backend().buffer().content();
        let rows = cells.chunks(usize::from(width));
        rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>() + "\n").collect()
    }

    fn view() -> View {
        let mut status = Status::starting("12D3KooWMine".to_owned());
        (status.state, status.round, status.rounds) = (PeerState::WaitingForNeighbours, 40, 200);
        status.plan = Some(PlanFacts {
            hash: "9f2e41c7aa".to_owned(),
            method: "nguyen-he".to_owned(),
            nodes: 3,
            origin: "plan.json".to_owned(),
            local_steps: 10,
        });
        status.evaluation = Some(Evaluated::new(40, [("accuracy", 0.912), ("loss", 0.3)].into_iter().collect()));
        status.contraction = Contraction { observed: Some(0.987), forecast: Some(0.5) };
        status.neighbours = vec![NeighbourStatus {
            node: 7,
            peer: "12D3KooWTheirs".to_owned(),
            state: LinkState::Suspended,
            reason: Some("it let a deadline pass".to_owned()),
            incarnation: 1,
            outgoing: Some(OutgoingLink {
                parcels: 40,
                unacknowledged_parcels: 1,
                unacknowledged_units: 1 << 39,
                given_weight: 20.0,
            }),
            incoming: None,
            account: Some(WeightAccount {
                taken: Some(0.21),
                given: Some(0.0),
                periods_ahead: 1.7,
                credit_periods: Some(1.5),
            }),
            round_trip_ms: Some(12.5),
            steps_behind: 3,
            sent_bytes: 1_500_000,
            multicast: None,
            received_bytes: 0,
        }];
        let mut view = View { status: Some(status), ..View::default() };
        for round in 1_u8..=20 {
            let x = f64::from(round);
            view.metrics.entry("accuracy".to_owned()).or_default().push((x, x / 25.0));
            view.metrics.entry("loss".to_owned()).or_default().push((x, 2.0 / x));
            view.disagreement.push((x, -x / 10.0));
        }
        view.events.push_back("suspended node 7: it let a deadline pass".to_owned());
        view
    }

    #[test]
    fn the_dashboard_shows_what_a_person_looks_for() {
        let picture = text(&view(), 120, 40);
        for words in [
            "12D3KooWMine",
            "waiting for neighbours  round 40/200",
            "plan 9f2e41c7 nguyen-he",
            "accuracy 0.912",
            "accuracy ↑",
            "loss ↓ / 2.00",
            "0.987 (mixing alone: 0.500)",
            "12D3KooWTheirs",
            "suspended",
            "0.5000",
            "21/0%",
            "+1.7",
            "suspended node 7: it let a deadline pass",
            "measured",
            "1e-2",
            "q quits",
        ] {
            assert!(picture.contains(words), "`{words}` is missing in\n{picture}");
        }
        let is_braille = |letter: &char| ('\u{2801}'..='\u{28ff}').contains(letter);
        assert!(picture.chars().filter(is_braille).count() > 40, "there are curves in\n{picture}");
    }

    #[test]
    fn a_small_terminal_shows_every_number_and_says_how_many_neighbours_it_leaves_out() {
        let mut small = view();
        if let Some(status) = &mut small.status {
            let neighbour = status.neighbours[0].clone();
            status.neighbours = (0..30).map(|node| NeighbourStatus { node, ..neighbour.clone() }).collect();
        }
        let picture = text(&small, 80, 24);
        for words in ["w/w* -", "incarnation 0", "neighbours: 4 of 30", "held-out samples", "it let a deadline pass"] {
            assert!(picture.contains(words), "`{words}` is missing in\n{picture}");
        }
        assert!(!text(&view(), 80, 24).contains("all with mingle peers"), "one neighbour has room");
    }

    #[test]
    fn any_size_and_any_state_can_be_drawn() {
        let ended = View { has_ended: true, ..view() };
        for view in [&View::default(), &view(), &ended] {
            for (width, height) in [(1, 1), (10, 3), (40, 12), (80, 24), (300, 100)] {
                text(view, width, height);
            }
        }
        assert!(text(&ended, 100, 30).contains("(ended)"));
        assert!(text(&View::default(), 100, 30).contains("waiting for the first snapshot"));
    }

    #[test]
    fn a_forecast_that_falls_out_of_the_picture_is_cut_at_its_edge() {
        assert_eq!(clipped(&vec![(10.0, -1.0), (20.0, -5.0)], -3.0), [(10.0, -1.0), (15.0, -3.0)]);
        assert_eq!(clipped(&vec![(10.0, -1.0), (20.0, -2.0)], -3.0), [(10.0, -1.0), (20.0, -2.0)]);
    }
}

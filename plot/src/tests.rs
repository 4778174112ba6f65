//! Requirements of a reader: any viewer opens the document, nothing lies off the canvas, and no text covers something
//! else.

use super::*;

/// A chart whose horizontal axis is linear.
fn line_chart(title: &str, x_label: &str, panels: &[Panel], marks: &[Mark]) -> String {
    super::line_chart(title, Horizontal { label: x_label, scale: Scale::Linear }, panels, marks)
}

fn series(name: &str, weight: LineWeight, points: &[(f64, f64)]) -> Series {
    Series { name: name.to_owned(), weight, points: points.to_vec() }
}

fn panel(scale: Scale, series: Vec<Series>) -> Panel {
    Panel { y_label: "accuracy".to_owned(), scale, bands: Vec::new(), series, references: Vec::new() }
}

fn mark(x: f64, label: &str) -> Mark {
    Mark { x, label: label.to_owned() }
}

/// Names of the tags in the order they close, or the place where the document is not well formed.
fn tags(svg: &str) -> Result<Vec<&str>, String> {
    let (mut open, mut closed, mut rest) = (Vec::new(), Vec::new(), svg);
    while let Some((text, after)) = rest.split_once('<') {
        if text.contains('>') {
            return Err(format!("a bare > in {text}"));
        }
        let (tag, after) = after.split_once('>').ok_or("a tag is never ended")?;
        if tag.contains('<') || tag.matches('"').count() % 2 == 1 {
            return Err(format!("broken tag {tag}"));
        }
        let name = tag.trim_matches('/').split_whitespace().next().ok_or("a tag without a name")?;
        if tag.starts_with('/') {
            let opened = open.pop().ok_or(format!("{name} closes nothing"))?;
            if opened != name {
                return Err(format!("{opened} is closed by {name}"));
            }
            closed.push(name);
        } else if tag.ends_with('/') {
            closed.push(name);
        } else {
            open.push(name);
        }
        rest = after;
    }
    if open.is_empty() { Ok(closed) } else { Err(format!("never closed: {open:?}")) }
}

/// The value of every attribute `name`.
fn attributes<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    svg.split(&*begin).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The `d` of every line of `weight`, legend samples left out.
fn lines(svg: &str, weight: LineWeight) -> Vec<&str> {
    let class = format!("<path class=\"{}\"", line_class(weight));
    let drawn = svg.lines().filter(|line| line.starts_with(&class) && !line.contains("h22"));
    drawn.filter_map(|line| attributes(line, "d").pop()).collect()
}

/// The points of a path made of absolute `M` and `L`.
fn points(path: &str) -> Vec<(f64, f64)> {
    let pairs = path.split(['M', 'L']).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (x, y) = pair.trim_end_matches("h0").split_once(',').expect("a pair");
            (x.parse().expect("a number"), y.parse().expect("a number"))
        })
        .collect()
}

#[test]
fn hostile_names_are_escaped_and_the_document_stays_well_formed() {
    let hostile = "</text><script>alert('&\"')</script>\u{0}\u{b}]]>";
    let mut first = panel(Scale::Linear, vec![series(hostile, LineWeight::Bold, &[(0.0, 1.0), (1.0, 2.0)])]);
    hostile.clone_into(&mut first.y_label);
    first.references.push(ReferenceLine { value: 1.5, label: hostile.to_owned() });
    let svg = line_chart(hostile, hostile, &[first], &[mark(0.5, hostile)]);

    let tags = tags(&svg).expect("well formed");
    assert_eq!(tags.last(), Some(&"svg"));
    assert!(!tags.contains(&"script"));
    assert!(svg.contains("&lt;/text&gt;&lt;script&gt;alert(&#39;&amp;&quot;&#39;)"));
    assert!(svg.chars().all(|character| character == '\n' || !character.is_control()));
}

#[test]
fn charts_of_nothing_are_well_formed_too() {
    let empty =
        panel(Scale::Log, vec![series("a", LineWeight::Thin, &[]), series("b", LineWeight::Bold, &[(f64::NAN, 1.0)])]);
    for panels in [&[][..], &[panel(Scale::Linear, Vec::new())], &[empty.clone(), empty]] {
        let svg = line_chart("", "", panels, &[mark(f64::INFINITY, "never")]);
        tags(&svg).expect("well formed");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!svg.contains("never"));
    }
}

#[test]
fn every_point_of_every_line_lies_inside_its_panel() {
    let wild = [(0.0, -4.0), (1.0, 1e9), (2.0, 0.5), (3.0, f64::NAN), (4.0, 1e-12), (1e6, 3.0)];
    let svg = line_chart(
        "wild",
        "round",
        &[
            panel(Scale::Linear, vec![series("a", LineWeight::Bold, &wild)]),
            panel(Scale::Log, vec![series("a", LineWeight::Bold, &wild)]),
        ],
        &[mark(-50.0, "before"), mark(2e6, "after")],
    );
    let drawn = lines(&svg, LineWeight::Bold);
    assert_eq!(drawn.len(), 2);
    let first_top = points(drawn[0]).iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    for (index, path) in drawn.into_iter().enumerate() {
        let top = first_top.floor() - 1.0 + index as f64 * (PANEL_HEIGHT + PANEL_GAP);
        for (x, y) in points(path) {
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "x {x} in {path}");
            assert!((top - 60.0..=top + PANEL_HEIGHT + 60.0).contains(&y), "y {y} in {path}");
        }
    }
    let heights: Vec<f64> = attributes(&svg, "height").iter().filter_map(|height| height.parse().ok()).collect();
    for y in attributes(&svg, "y") {
        let y: f64 = y.parse().expect("a number");
        assert!((0.0..=heights[0]).contains(&y), "text at y {y}");
    }
}

#[test]
fn points_without_a_place_leave_a_gap_and_lonely_points_become_dots() {
    let gaps = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 3.0), (4.0, f64::INFINITY), (5.0, 2.0), (6.0, 1.0)];
    let svg = line_chart("gaps", "round", &[panel(Scale::Linear, vec![series("a", LineWeight::Bold, &gaps)])], &[]);
    let path = lines(&svg, LineWeight::Bold)[0];
    assert_eq!(path.matches('M').count(), 3);
    assert_eq!(path.matches("h0").count(), 1);
    assert_eq!(points(path).len(), 5);
}

#[test]
fn higher_values_are_drawn_higher_and_later_ones_further_right() {
    let rising = [(0.0, 1e-3), (10.0, 1e-2), (20.0, 1e-1)];
    let svg = line_chart("", "", &[panel(Scale::Log, vec![series("a", LineWeight::Bold, &rising)])], &[]);
    let drawn = points(lines(&svg, LineWeight::Bold)[0]);
    assert_eq!(
        drawn.iter().map(|point| point.0).collect::<Vec<_>>(),
        [LEFT, f64::midpoint(LEFT, WIDTH - RIGHT), WIDTH - RIGHT]
    );
    assert!((drawn[0].1 - drawn[2].1 - PANEL_HEIGHT).abs() < 0.11, "{drawn:?}");
    assert!((drawn[0].1 - drawn[1].1 - PANEL_HEIGHT / 2.0).abs() < 0.11, "{drawn:?}");
}

#[test]
fn a_name_keeps_its_colour_in_every_panel() {
    let names = ["node-0", "node-1", "mean"];
    let lines = |order: [usize; 3]| {
        order.map(|index| series(names[index], LineWeight::Thin, &[(0.0, 1.0), (1.0, 2.0)])).to_vec()
    };
    let svg = line_chart("", "", &[panel(Scale::Linear, lines([0, 1, 2])), panel(Scale::Log, lines([2, 0, 1]))], &[]);
    let colours: Vec<&str> = svg
        .lines()
        .filter(|line| line.starts_with("<path class=\"line thin\"") && !line.contains("h22"))
        .filter_map(|line| attributes(line, "stroke").pop())
        .collect();
    assert_eq!(colours.len(), 6);
    assert_eq!(colours[..3], [colours[4], colours[5], colours[3]]);
    assert_eq!(colours[..3].iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
}

#[test]
fn a_crowd_of_thin_lines_is_one_entry_of_the_legend() {
    let crowd = (0..33).map(|index| series(&format!("node-{index}"), LineWeight::Thin, &[(0.0, 1.0)]));
    let mean = series("mean", LineWeight::Bold, &[(0.0, 1.0)]);
    let svg = line_chart("", "", &[panel(Scale::Linear, crowd.chain([mean]).collect())], &[]);
    assert_eq!(svg.matches("class=\"legend\"").count(), 2);
    assert!(svg.contains("node-0 … node-32") && !svg.contains("node-7"));
}

#[test]
fn legend_entries_follow_each_other_without_overlap_and_stay_on_the_canvas() {
    let many: Vec<Series> =
        (0..14).map(|index| series(&"long name ".repeat(index), LineWeight::Bold, &[(0.0, 1.0)])).collect();
    let panels = [panel(Scale::Linear, many)];
    let legend = Legend::new(&panels, LEFT, WIDTH - RIGHT);
    assert!(legend.rows() > 1);
    for entry in &legend.entries {
        assert!(entry.x + NAME_OFFSET + text_width(&entry.label, SMALL_TEXT) <= WIDTH - RIGHT, "{entry:?}");
    }
    for pair in legend.entries.windows(2) {
        let end = pair[0].x + NAME_OFFSET + text_width(&pair[0].label, SMALL_TEXT);
        assert!(pair[1].row > pair[0].row || pair[1].x > end, "{pair:?}");
    }
}

#[test]
fn labels_of_marks_cover_neither_each_other_nor_a_line() {
    let marks = [
        mark(10.0, "node-3 killed"),
        mark(11.0, "node-3 suspended"),
        mark(10.5, "plan 2"),
        mark(10.5, "plan 3"),
        mark(60.0, "node-1 back"),
        mark(93.0, "node-1 suspended"),
        mark(96.0, "node-1 killed for good"),
        mark(98.0, "node-2 killed for good"),
        mark(100.0, "end"),
    ];
    let panels = [panel(Scale::Linear, vec![series("a", LineWeight::Bold, &[(0.0, 0.0), (100.0, 1.0)])])];
    let chart = Chart::new(Scale::Linear, &panels, &marks);
    assert_eq!(chart.marks.len(), marks.len());
    assert!(chart.marks.iter().any(|mark| mark.left));
    for (index, a) in chart.marks.iter().enumerate() {
        let extent = |mark: &PlacedMark<'_>| {
            let width = text_width(&mark.mark.label, SMALL_TEXT);
            if mark.left { (mark.x - width, mark.x) } else { (mark.x, mark.x + width) }
        };
        let (begin, end) = extent(a);
        assert!(begin > 0.0 && end < WIDTH, "{} leaves the canvas", a.mark.label);
        for (other, b) in chart.marks.iter().enumerate() {
            let crossed = b.x > begin && b.x < end && b.row >= a.row;
            assert!(!crossed, "the line of {} crosses {}", b.mark.label, a.mark.label);
            let apart = a.row != b.row || end <= extent(b).0 || extent(b).1 <= begin;
            assert!(index == other || apart, "{} covers {}", a.mark.label, b.mark.label);
        }
    }
}

#[test]
fn labels_of_close_references_keep_their_order_and_their_distance() {
    let mut close = panel(Scale::Linear, vec![series("a", LineWeight::Bold, &[(0.0, 0.0), (1.0, 1.0)])]);
    for (value, label) in [(0.0, "floor"), (0.001, "alone"), (0.953, "swarm"), (0.95, "again"), (0.96, "central")] {
        close.references.push(ReferenceLine { value, label: label.to_owned() });
    }
    let panels = [close];
    let top = Chart::new(Scale::Linear, &panels, &[]).top;
    let svg = line_chart("", "", &panels, &[]);
    let y_of = |label: &str| -> f64 {
        let line = svg.lines().find(|line| line.ends_with(&format!(">{label}</text>"))).expect("a label");
        attributes(line, "y")[0].parse().expect("a number")
    };
    let from_top = ["central", "swarm", "again", "alone", "floor"].map(y_of);
    assert!(from_top[0] > top && from_top[4] < top + PANEL_HEIGHT + LABEL_DISTANCE);
    for pair in from_top.windows(2) {
        assert!(pair[1] - pair[0] >= LABEL_DISTANCE - 0.11, "{from_top:?}");
    }
}

#[test]
fn a_long_series_is_thinned_to_what_can_be_seen_and_keeps_its_extremes() {
    let mut long: Vec<(f64, f64)> =
        (0..200_000).map(|index| (f64::from(index), f64::from(index % 7) / 100.0)).collect();
    long[123_456].1 = 1.0;
    let svg = line_chart("", "", &[panel(Scale::Linear, vec![series("a", LineWeight::Bold, &long)])], &[]);
    let drawn = points(lines(&svg, LineWeight::Bold)[0]);
    assert!(drawn.len() <= 4 * (WIDTH as usize), "{} points", drawn.len());
    let heights = drawn.iter().map(|point| point.1);
    let (top, bottom) = (heights.clone().fold(f64::INFINITY, f64::min), heights.fold(0.0, f64::max));
    assert!((bottom - top - PANEL_HEIGHT).abs() < 0.11);
}

#[test]
fn the_same_chart_gives_the_same_text() {
    let draw = || {
        let panels = [panel(Scale::Linear, vec![series("a", LineWeight::Thin, &[(0.0, 0.1), (1.0, 0.2)])])];
        line_chart("title", "round", &panels, &[mark(1.0, "end")])
    };
    assert_eq!(draw(), draw());
}

#[test]
fn the_seeds_of_a_mean_are_in_its_colour_and_not_named_again() {
    let lines =
        [series("a", LineWeight::Thin, &[(1.0, 1.0), (2.0, 2.0)]), series("a", LineWeight::Bold, &[(1.0, 2.0)])];
    let svg = line_chart("", "", &[panel(Scale::Linear, lines.to_vec())], &[]);
    assert_eq!(svg.matches(">a<").count(), 1);
    assert_eq!(svg.matches("#14304f").count(), 3, "its sample, its mean, its seed: {svg}");
}

#[test]
fn a_logarithmic_axis_gives_equal_ratios_equal_distances() {
    let points = [(10.0, 1.0), (100.0, 1.0), (1000.0, 1.0)];
    let panels = [panel(Scale::Linear, vec![series("a", LineWeight::Bold, &points)])];
    let svg = super::line_chart("", Horizontal { label: "slots", scale: Scale::Log }, &panels, &[]);
    let line = svg.lines().find(|line| line.contains("bold") && line.contains('L')).unwrap_or_default();
    let path = line.split("d=\"").nth(1).unwrap_or_default();
    let numbers: Vec<f64> =
        path.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|number| number.parse().ok()).collect();
    let xs: Vec<f64> = numbers.iter().step_by(2).copied().collect();
    assert_eq!(xs.len(), 3, "{line}");
    assert!((xs[1] - xs[0] - (xs[2] - xs[1])).abs() < 0.3, "{line}");
}

#[test]
fn a_band_goes_there_along_its_lowest_and_back_along_its_highest_and_ends_at_gaps() {
    let mut panel = panel(Scale::Linear, vec![series("mean", LineWeight::Bold, &[(0.0, 1.0), (4.0, 1.0)])]);
    let points = vec![(0.0, 0.0, 2.0), (1.0, 0.5, 1.5), (2.0, f64::NAN, 1.0), (3.0, 0.0, 1.0), (4.0, 0.0, 2.0)];
    panel.bands.push(Band { name: "mean".to_owned(), points });
    let svg = line_chart("title", "x", &[panel], &[]);
    assert!(tags(&svg).is_ok(), "{:?}", tags(&svg));
    let band = svg.lines().find(|line| line.starts_with("<path class=\"band\"")).expect("a band");
    let areas: Vec<&str> = attributes(band, "d")[0].split_inclusive('Z').collect();
    assert_eq!(areas.len(), 2, "{band}");
    for area in areas {
        assert_eq!((area.matches('M').count(), area.matches('L').count()), (1, 3), "{area}");
    }
    assert!(band.contains("fill:#14304f"), "{band}");
}

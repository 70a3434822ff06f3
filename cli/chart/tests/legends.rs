//! A legend covers no data, whatever a panel holds.

use ebbtide_chart::{
    Axis, Band, BarLayer, Figure, LineLayer, Panel, PointLayer, PointShape, ReferenceLine,
};

/// A rectangle in pixels: left, top, right, bottom.
#[derive(Debug, Clone, Copy)]
struct Rect([f64; 4]);

impl Rect {
    fn around(points: &[(f64, f64)], margin: f64) -> Self {
        let mut rect = [
            f64::INFINITY,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NEG_INFINITY,
        ];
        for (x, y) in points {
            rect[0] = rect[0].min(x - margin);
            rect[1] = rect[1].min(y - margin);
            rect[2] = rect[2].max(x + margin);
            rect[3] = rect[3].max(y + margin);
        }
        Self(rect)
    }

    fn meets(self, other: Self) -> bool {
        let [left, top, right, bottom] = self.0;
        let [l, t, r, b] = other.0;
        left < r && l < right && top < b && t < bottom
    }

    fn is_within(self, width: f64, height: f64) -> bool {
        let [left, top, right, bottom] = self.0;
        left >= 0.0 && top >= 0.0 && right <= width && bottom <= height
    }
}

/// The value of an attribute of an element.
fn attribute(element: &str, name: &str) -> Option<f64> {
    let from = element.split(&format!("{name}=\"")).nth(1)?;
    from.split('"').next()?.parse().ok()
}

/// Where an element of the figure is, if it is no text.
fn place(element: &str) -> Option<Rect> {
    let number = |name: &str| attribute(element, &format!(" {name}"));
    let kind = element.split(' ').next()?;
    match kind {
        "circle" => {
            let middle = (number("cx")?, number("cy")?);
            Some(Rect::around(&[middle], number("r")?))
        }
        "rect" => {
            let (x, y) = (number("x")?, number("y")?);
            let end = (x + number("width")?, y + number("height")?);
            Some(Rect::around(&[(x, y), end], 0.0))
        }
        "polygon" | "polyline" => {
            let points = element.split("points=\"").nth(1)?.split('"').next()?;
            let points: Vec<(f64, f64)> = points
                .split_whitespace()
                .filter_map(|point| {
                    let (x, y) = point.split_once(',')?;
                    Some((x.parse().ok()?, y.parse().ok()?))
                })
                .collect();
            Some(Rect::around(&points, 0.0))
        }
        "line" => {
            let from = (number("x1")?, number("y1")?);
            Some(Rect::around(&[from, (number("x2")?, number("y2")?)], 0.0))
        }
        _ => None,
    }
}

/// Where the texts with this beginning are. Each is as wide as letters of 13 pixels are on average.
fn texts(svg: &str, prefix: &str) -> Vec<Rect> {
    svg.split("<text ")
        .skip(1)
        .filter_map(|element| {
            let text = element.split_once('>')?.1.split('<').next()?.trim();
            if !text.starts_with(prefix) {
                return None;
            }
            let element = format!(" {element}");
            let (x, y) = (attribute(&element, " x")?, attribute(&element, " y")?);
            let width = text.chars().count() as f64 * 13.0 * 0.56;
            Some(Rect::around(&[(x, y), (x + width, y + 13.0)], 0.0))
        })
        .collect()
}

/// A plot that is full of data up to its corners, with a legend of `names`.
fn crowded(names: &[String], height: u32) -> Panel {
    let corners = vec![(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0)];
    let axis = || Axis::new("axis").range(0.0, 1.0);
    let mut panel = Panel::new(axis(), axis())
        .height(height)
        .with(Band::new("", vec![(0.0, 0.0, 1.0), (1.0, 0.0, 1.0)]).solid())
        .with(BarLayer::new("", vec![(0.5, 1.0)]).width(1.0))
        .with(PointLayer::new("", corners.clone()).size(4))
        .with(ReferenceLine::horizontal(1.0).label("a limit"))
        .with(ReferenceLine::vertical(1.0).label("a deadline"));
    for (at, name) in names.iter().enumerate() {
        let line = LineLayer::new(name.as_str(), corners.clone());
        panel = panel.with(match at % 3 {
            0 => line,
            1 => line.marks(PointShape::Triangle),
            _ => line.marks(PointShape::Circle),
        });
    }
    panel
}

#[test]
fn no_part_of_a_legend_meets_the_plot_or_another_part() {
    let long =
        "a name that is far too long for one line of a figure of this width, by whatever font";
    let worst: Vec<String> = (0..24)
        .map(|n| match n % 4 {
            0 => format!("legend {n} {long} {long}"),
            _ => format!("legend {n}{}", " word".repeat(n % 7)),
        })
        .collect();
    for names in [&worst[1..2], &worst[..5], &worst[..]] {
        for (width, height) in [(200, 120), (640, 120), (640, 380)] {
            for title in ["", "a title"] {
                let panel = crowded(names, height).title(title);
                let figure = Figure::new("").width(width).panel(panel);
                let svg = figure.svg().unwrap();
                let size = (attribute(&svg, " width"), attribute(&svg, " height"));
                let (Some(right), Some(bottom)) = size else {
                    panic!("{svg}")
                };

                let legend = texts(&svg, "legend ");
                assert_eq!(legend.len(), names.len());
                let lowest = legend.iter().map(|text| text.0[3]).fold(0.0, f64::max);
                for (at, text) in legend.iter().enumerate() {
                    assert!(text.is_within(right, bottom), "{text:?} {width}x{height}");
                    for other in &legend[at + 1..] {
                        assert!(!text.meets(*other), "{text:?} {other:?} {width}x{height}");
                    }
                }
                // Samples stand beside their names. Everything else is the plot, which begins where
                // the band does, and the marks on its rim.
                let drawn = svg
                    .split('<')
                    .filter(|element| !element.contains("#FFFFFF"));
                let drawn: Vec<Rect> = drawn.filter_map(place).collect();
                let (samples, plot): (Vec<Rect>, Vec<Rect>) =
                    drawn.iter().partition(|rect| rect.0[3] <= lowest + 2.0);
                assert!(samples.len() >= names.len(), "{}", samples.len());
                assert!(plot.len() > names.len(), "{}", plot.len());
                for data in &plot {
                    assert!(data.is_within(right, bottom), "{data:?} {width}x{height}");
                    for part in legend.iter().chain(&samples) {
                        assert!(!data.meets(*part), "{data:?} {part:?} {width}x{height}");
                    }
                }
                for sample in &samples {
                    let met = legend.iter().any(|text| text.meets(*sample));
                    assert!(!met, "{sample:?} {width}x{height}");
                }
                let highest = plot.iter().map(|data| data.0[3] - data.0[1]);
                let highest = highest.fold(0.0, f64::max);
                assert!(highest >= 20.0, "the plot is {highest} pixels high");
            }
        }
    }
}

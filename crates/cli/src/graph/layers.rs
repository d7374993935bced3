//! Branches and joins: boxes in layers from top to bottom, each below those that send to it, with lines between them.

use super::{
    Canvas, Graph,
    grid::{Frame, Grid},
};

/// Between two boxes of a layer.
const GAP: usize = 3;

/// The narrowest a box is made so that all of a layer fit.
const NARROWEST: usize = 12;

/// None if a layer is too wide for the canvas.
pub fn draw(graph: &Graph, canvas: Canvas) -> Option<Vec<String>> {
    let plan = [canvas.columns, 24, 18, NARROWEST]
        .into_iter()
        .map(|widest| Plan::new(graph, canvas, widest))
        .find(|plan| plan.width() <= canvas.columns)?;
    Some(plan.draw(canvas))
}

/// A box, or a place where a line passes a layer.
struct Item {
    frame: Option<Frame>,
    layer: usize,
    x: usize,
}

struct Plan {
    items: Vec<Item>,
    /// The items of each layer, from left to right.
    layers: Vec<Vec<usize>>,
    /// From an item to one of the next layer.
    links: Vec<(usize, usize)>,
}

/// A line that several links share between two layers.
struct Track {
    key: Key,
    sources: Vec<usize>,
    targets: Vec<usize>,
    from: usize,
    to: usize,
    row: usize,
}

/// What links have in common that share a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    /// They come from one item.
    From(usize),
    /// They meet in one item.
    Into(usize),
}

impl Plan {
    fn new(graph: &Graph, canvas: Canvas, widest: usize) -> Self {
        let ranks = ranks(graph);
        let mut plan = Self { items: Vec::new(), layers: Vec::new(), links: Vec::new() };
        for (number, node) in graph.nodes.iter().enumerate() {
            plan.item(Some(Frame::around(node, widest, canvas)), ranks[number]);
        }
        for edge in graph.edges.iter().filter(|edge| !edge.is_back) {
            let mut from = edge.from;
            for layer in ranks[edge.from] + 1..ranks[edge.to] {
                let passing = plan.item(None, layer);
                plan.links.push((from, passing));
                from = passing;
            }
            // Two edges to the same agent are one line.
            if !plan.links.contains(&(from, edge.to)) {
                plan.links.push((from, edge.to));
            }
        }
        plan.order();
        plan.place();
        plan
    }

    fn item(&mut self, frame: Option<Frame>, layer: usize) -> usize {
        let number = self.items.len();
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        self.items.push(Item { frame, layer, x: 0 });
        self.layers[layer].push(number);
        number
    }

    /// Moves items towards those they are linked with, so that few lines cross.
    fn order(&mut self) {
        for sweep in 0..6 {
            let downwards = sweep % 2 == 0;
            let n_layers = self.layers.len();
            let numbers: Vec<usize> =
                if downwards { (1..n_layers).collect() } else { (0..n_layers).rev().skip(1).collect() };
            for layer in numbers {
                let beside = if downwards { layer - 1 } else { layer + 1 };
                let places: Vec<(f64, usize)> = self.layers[layer]
                    .iter()
                    .enumerate()
                    .map(|(place, item)| (self.middle(*item, beside).unwrap_or(place as f64), *item))
                    .collect();
                let mut places = places;
                places.sort_by(|one, other| one.0.total_cmp(&other.0));
                self.layers[layer] = places.into_iter().map(|(_, item)| item).collect();
            }
        }
    }

    /// Where its neighbours of a layer stand in that layer, on average.
    fn middle(&self, item: usize, layer: usize) -> Option<f64> {
        let places: Vec<usize> = self
            .neighbours(item)
            .filter_map(|other| self.layers[layer].iter().position(|known| *known == other))
            .collect();
        let count = places.len();
        (count > 0).then(|| places.iter().sum::<usize>() as f64 / count as f64)
    }

    fn neighbours(&self, item: usize) -> impl Iterator<Item = usize> + '_ {
        self.links.iter().filter_map(move |(from, to)| match item {
            _ if *from == item => Some(*to),
            _ if *to == item => Some(*from),
            _ => None,
        })
    }

    /// Below the middle of those that send there, as far as there is room.
    fn place(&mut self) {
        let mut lefts: Vec<i64> = vec![0; self.items.len()];
        for layer in 0..self.layers.len() {
            let mut free = i64::MIN;
            let mut shift = 0;
            let items = self.layers[layer].clone();
            for item in &items {
                let wanted = self.wanted(*item, &lefts);
                let left = wanted.unwrap_or(free.max(0)).max(free);
                shift += wanted.map_or(0, |wanted| left - wanted);
                lefts[*item] = left;
                free = left + as_i64(self.item_width(*item) + GAP);
            }
            // Who was pushed to the right pulls the whole layer back to the left.
            let back = shift / as_i64(items.len().max(1));
            for item in &items {
                lefts[*item] -= back;
            }
        }
        let least = lefts.iter().copied().min().unwrap_or(0);
        for (item, left) in self.items.iter_mut().zip(lefts) {
            item.x = usize::try_from(left - least).unwrap_or(0);
        }
    }

    fn wanted(&self, item: usize, lefts: &[i64]) -> Option<i64> {
        let senders: Vec<i64> = self
            .links
            .iter()
            .filter(|(_, to)| *to == item)
            .map(|(from, _)| lefts[*from] + as_i64(self.item_width(*from) / 2))
            .collect();
        let count = as_i64(senders.len());
        (count > 0).then(|| senders.iter().sum::<i64>() / count - as_i64(self.item_width(item) / 2))
    }

    fn item_width(&self, item: usize) -> usize {
        self.items[item].frame.as_ref().map_or(1, |frame| frame.width)
    }

    fn centre(&self, item: usize) -> usize {
        self.items[item].x + self.item_width(item) / 2
    }

    /// Where a link leaves one item and enters another: in the middle, unless that is beside a straight line.
    fn ends(&self, from: usize, to: usize) -> (usize, usize) {
        let (out, into) = (self.centre(from), self.centre(to));
        let n_senders = self.links.iter().filter(|link| link.1 == to).count();
        let n_targets = self.links.iter().filter(|link| link.0 == from).count();
        match out.abs_diff(into) {
            1 if n_senders == 1 && self.items[to].frame.is_some() => (out, out),
            1 if n_targets == 1 && self.items[from].frame.is_some() => (into, into),
            _ => (out, into),
        }
    }

    fn width(&self) -> usize {
        (0..self.items.len()).map(|item| self.items[item].x + self.item_width(item)).max().unwrap_or(0)
    }

    fn draw(&self, canvas: Canvas) -> Vec<String> {
        let mut grid = Grid::new(canvas);
        let mut y = 0;
        for layer in 0..self.layers.len() {
            let height = self.height(layer);
            for item in &self.layers[layer] {
                match &self.items[*item].frame {
                    Some(frame) => grid.frame(frame, self.items[*item].x, y),
                    None => grid.down(self.centre(*item), y, y + height - 1),
                }
            }
            y = self.draw_links(&mut grid, layer, y, height);
        }
        grid.lines()
    }

    fn height(&self, layer: usize) -> usize {
        let heights = self.layers[layer]
            .iter()
            .map(|item| self.items[*item].frame.as_ref().map_or(1, |frame| frame.height));
        heights.max().unwrap_or(1)
    }

    /// Draws what leads from a layer to the next one, and gives the row where that one begins.
    fn draw_links(&self, grid: &mut Grid, layer: usize, y: usize, height: usize) -> usize {
        let tracks = self.tracks(layer);
        let n_rows = tracks.iter().map(|track| track.row + 1).max().unwrap_or(0);
        let first = y + height;
        // One row for arrows at least.
        let next = first + n_rows + 1;
        let is_here = |(from, _): &&(usize, usize)| self.items[*from].layer == layer;
        for (from, to) in self.links.iter().filter(is_here) {
            let track = tracks.iter().find(|track| track.key == self.key(*from, *to));
            let (out, into) = self.ends(*from, *to);
            let bottom = match &self.items[*from].frame {
                Some(frame) => y + frame.height - 1,
                None => first - 1,
            };
            let turn = track.map_or(first, |track| first + track.row);
            grid.down(out, bottom, turn);
            grid.across(out, into, turn);
            if self.items[*to].frame.is_some() {
                grid.down(into, turn, next - 1);
                grid.arrow_down(into, next - 1);
            } else {
                grid.down(into, turn, next);
            }
        }
        next
    }

    fn key(&self, from: usize, to: usize) -> Key {
        let n_senders = self.links.iter().filter(|link| link.1 == to).count();
        if n_senders > 1 { Key::Into(to) } else { Key::From(from) }
    }

    /// Links that meet share a line, and so do those that part.
    fn tracks(&self, layer: usize) -> Vec<Track> {
        let mut tracks: Vec<Track> = Vec::new();
        for (from, to) in self.links.iter().filter(|(from, _)| self.items[*from].layer == layer) {
            let key = self.key(*from, *to);
            let (out, into) = self.ends(*from, *to);
            let (low, high) = (out.min(into), out.max(into));
            match tracks.iter_mut().find(|track| track.key == key) {
                Some(track) => {
                    track.sources.push(*from);
                    track.targets.push(*to);
                    (track.from, track.to) = (track.from.min(low), track.to.max(high));
                }
                None => {
                    let (sources, targets) = (vec![*from], vec![*to]);
                    tracks.push(Track { key, sources, targets, from: low, to: high, row: 0 });
                }
            }
        }
        // What goes straight down needs no line of its own.
        tracks.retain(|track| track.from != track.to);
        self.stack(&mut tracks);
        tracks
    }

    /// Gives each track a row of its own where it would touch another. One that comes from above where another goes
    /// down has to turn first.
    fn stack(&self, tracks: &mut [Track]) {
        for _ in 0..tracks.len() {
            for one in 0..tracks.len() {
                for other in 0..tracks.len() {
                    if one != other && self.is_above(&tracks[one], &tracks[other]) {
                        let least = tracks[one].row + 1;
                        tracks[other].row = tracks[other].row.max(least);
                    }
                }
            }
        }
        for place in 1..tracks.len() {
            let (before, rest) = tracks.split_at_mut(place);
            let track = &mut rest[0];
            let touches = |other: &Track, row: usize| {
                other.row == row && other.from <= track.to + 1 && track.from <= other.to + 1
            };
            while before.iter().any(|other| touches(other, track.row)) {
                track.row += 1;
            }
        }
    }

    fn is_above(&self, one: &Track, other: &Track) -> bool {
        let into: Vec<usize> = other.targets.iter().map(|target| self.centre(*target)).collect();
        one.sources.iter().any(|source| into.contains(&self.centre(*source)))
            && !other.sources.iter().any(|source| one.sources.contains(source))
    }
}

/// How far each agent is from the first ones, along the longest way.
fn ranks(graph: &Graph) -> Vec<usize> {
    let mut ranks = vec![0; graph.nodes.len()];
    for _ in 0..graph.nodes.len() {
        for edge in graph.edges.iter().filter(|edge| !edge.is_back) {
            ranks[edge.to] = ranks[edge.to].max(ranks[edge.from] + 1);
        }
    }
    ranks
}

fn as_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

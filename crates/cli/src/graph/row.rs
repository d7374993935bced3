//! Agents one behind the other: boxes in a row, which goes on in the next line where it has to.

use super::{
    Canvas, Graph,
    grid::{Frame, Grid},
};

/// `──▶` between two boxes.
const ARROW: usize = 3;

/// Room in front of a line that goes on from the one above.
const INDENT: usize = 3;

/// None if the graph is not a row.
pub fn draw(graph: &Graph, canvas: Canvas) -> Option<Vec<String>> {
    let order = order(graph)?;
    let widest = canvas.columns.saturating_sub(INDENT).max(8);
    let frames: Vec<Frame> =
        order.iter().map(|number| Frame::around(&graph.nodes[*number], widest, canvas)).collect();
    let height = frames.iter().map(|frame| frame.height).max()?;
    let mut grid = Grid::new(canvas);
    let (mut x, mut y) = (0, 0);
    for (place, frame) in frames.iter().enumerate() {
        if place > 0 && x + ARROW + frame.width > canvas.columns {
            // Out of the box that this line ends with, back to the left, and into the next line.
            let out = x - frames[place - 1].width + 2;
            let (bottom, turn) = (y + frames[place - 1].height - 1, y + height);
            grid.down(out, bottom, turn);
            grid.across(0, out, turn);
            (x, y) = (INDENT, turn + 1);
            grid.down(0, turn, y + 1);
            grid.across(0, INDENT - 1, y + 1);
            grid.arrow_right(INDENT - 1, y + 1);
        } else if place > 0 {
            grid.across(x - 1, x + ARROW - 1, y + 1);
            grid.arrow_right(x + ARROW - 1, y + 1);
            x += ARROW;
        }
        grid.frame(frame, x, y);
        x += frame.width;
    }
    Some(grid.lines())
}

/// The agents in their order, if each sends to the next and to nobody else.
fn order(graph: &Graph) -> Option<Vec<usize>> {
    let n_nodes = graph.nodes.len();
    if graph.edges.len() + 1 != n_nodes || graph.edges.iter().any(|edge| edge.is_back || edge.is_delegation) {
        return None;
    }
    let is_target = |node: &usize| graph.edges.iter().any(|edge| edge.to == *node);
    let mut order = vec![(0..n_nodes).find(|node| !is_target(node))?];
    while order.len() < n_nodes {
        let last = *order.last()?;
        let mut targets = graph.edges.iter().filter(|edge| edge.from == last);
        let next = targets.next()?.to;
        if targets.next().is_some() || order.contains(&next) {
            return None;
        }
        order.push(next);
    }
    Some(order)
}

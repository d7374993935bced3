//! The page of figures, from what the server would show.

use super::markdown::{Table, code};

const INTRODUCTION: &str = "\
# Metrics

`GET /metrics` gives them as Prometheus reads them, to whoever may read in all namespaces. Counters and histograms are of the
server that is asked, since its start; add those of all servers. Gauges are read from the store: any server gives the same. Names
that begin with `orloj_` are those that dashboards for that system know.
";

pub fn page() -> String {
    let mut table = Table::new(["Name", "Type", "Labels", "What it tells"]);
    for metric in ostler_server::metrics() {
        let labels: Vec<String> = metric.labels.iter().map(|label| code(label)).collect();
        table.row([code(&metric.name), metric.kind, labels.join(", "), metric.about]);
    }
    format!("{INTRODUCTION}\n{}", table.text())
}

//! The page of figures, from what the server would show.

use super::markdown::{Table, code};

const INTRODUCTION: &str = "\
# Metrics

`GET /metrics` gives them as Prometheus reads them, to whoever may read in all namespaces. Counters and histograms are of the
server that is asked, since its start; add those of all servers. Gauges are read from the store: any server gives the same. Names
that begin with `orloj_` are those that dashboards for that system know; `ostler_gateway_overhead_seconds` and those that begin
with `gen_ai_client_` tell of the worker in the same process. A collector is told the same over OTLP, by servers and by workers of their
own ([observe](../guides/observe.md)).
";

pub fn page() -> String {
    let mut table =
        Table::new(["Name", "Type", "Labels", "What it tells", "Over OTLP, if it has another name"]);
    for metric in ostler_server::metrics() {
        let labels: Vec<String> = metric.labels.iter().map(|label| code(label)).collect();
        let over_otlp = metric.over_otlp.map(code).unwrap_or_default();
        let (kind, about) = (metric.kind.to_owned(), metric.about.to_owned());
        table.row([code(&metric.name), kind, labels.join(", "), about, over_otlp]);
    }
    format!("{INTRODUCTION}\n{}", table.text())
}

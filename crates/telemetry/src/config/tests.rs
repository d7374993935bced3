use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let found =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Config::read(&found)
}

fn traces(variables: &[(&str, &str)]) -> Target {
    read(variables).unwrap().traces.unwrap()
}

#[test]
fn without_a_collector_nothing_is_exported() {
    let config = read(&[("OTEL_SERVICE_NAME", "shop")]).unwrap();
    assert!(config.traces.is_none() && config.metrics.is_none());
    let disabled = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SDK_DISABLED", "true")];
    assert!(read(&disabled).unwrap().traces.is_none());
    let none = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_TRACES_EXPORTER", "none")];
    let config = read(&none).unwrap();
    assert!(config.traces.is_none() && config.metrics.is_some());
}

#[test]
fn an_endpoint_says_where_and_how() {
    let target = traces(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/otlp/")]);
    assert_eq!((target.protocol, target.path.as_str()), (Protocol::Http, "/otlp/v1/traces"));
    let target = traces(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317")]);
    assert_eq!((target.protocol, target.is_tls, target.port), (Protocol::Grpc, false, 4317));
    assert!(target.path.ends_with("TraceService/Export"));
    let target = traces(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/spans"),
    ]);
    assert_eq!((target.host.as_str(), target.port, target.path.as_str()), ("other", 4318, "/spans"));
    let target =
        traces(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "[::1]:4317"), ("OTEL_EXPORTER_OTLP_INSECURE", "true")]);
    assert_eq!((target.host.as_str(), target.is_tls), ("::1", false));
}

#[test]
fn what_is_sent_along_is_read_and_hidden() {
    let config = read(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=ab%20c, tenant=one"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,team=a%2Cb"),
    ])
    .unwrap();
    assert!(config.hidden().any(|value| value == "ab c"));
    let has = |key: &str, value: &str| config.resource.contains(&(key.to_owned(), value.to_owned()));
    assert!(has("service.name", "shop") && has("team", "a,b"));
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    let cases = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://c"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "no pair"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
    ];
    for case in cases {
        let error = read(&[case, endpoint]).unwrap_err();
        assert_eq!(error.variable, case.0, "{error}");
    }
    let error =
        read(&[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")]).unwrap_err();
    assert_eq!(error.variable, "OTEL_TRACES_SAMPLER_ARG");
}

#[test]
fn the_latest_names_are_asked_for_in_a_list() {
    let latest = |list: &str| read(&[("OTEL_SEMCONV_STABILITY_OPT_IN", list)]).unwrap().latest;
    assert!(latest("gen_ai_latest_experimental") && latest("http, gen_ai_latest_experimental"));
    assert!(!latest("http") && !latest("gen_ai_latest_experimental_2") && !read(&[]).unwrap().latest);
}

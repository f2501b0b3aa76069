//! Writes a random scenario as TOML.

use celltrain_core::tcp::TcpConfig;
use celltrain_scenario::Scenario;
use serde_json::{Value, json};

use super::draw;

/// Writes a scenario in the way of a user, without default values.
pub(crate) fn text(scenario: &Scenario) -> String {
    let plain = |tcp: &TcpConfig| serde_json::to_value(draw::plain_tcp(tcp.name())).unwrap();
    let mut document = serde_json::to_value(scenario).unwrap();
    leave_out(&mut document["tcp"], &plain(&scenario.tcp));
    for (name, flow) in &scenario.flow {
        if let Some(tcp) = &flow.tcp {
            leave_out(&mut document["flow"][name]["tcp"], &plain(tcp));
        }
    }
    for (key, default) in [
        ("name", Value::from("")),
        ("flow", json!({})),
        ("vc", json!({})),
        ("switch", serde_json::to_value(celltrain_scenario::scenario::SwitchOptions::default()).unwrap()),
        ("host", serde_json::to_value(celltrain_core::host::HostOptions::default()).unwrap()),
        ("aal5", serde_json::to_value(celltrain_core::aal5::Aal5Options::default()).unwrap()),
    ] {
        leave_out(&mut document[key], &default);
        if document[key] == default || document[key] == json!({}) {
            document.as_object_mut().unwrap().remove(key);
        }
    }
    for flow in document["topology"]["network"]["flows"].as_array_mut().into_iter().flatten() {
        leave_out(flow, &json!({"start": "0s"}));
    }
    without_nulls(&mut document);
    toml::to_string(&document).unwrap()
}

/// Removes the keys of tables whose values are the defaults.
fn leave_out(value: &mut Value, defaults: &Value) {
    if let (Value::Object(map), Value::Object(defaults)) = (value, defaults) {
        // Keep an empty table, which may be a choice that has only a name and no settings.
        map.retain(|key, value| value.is_object() || defaults.get(key) != Some(value));
        for (key, value) in map {
            leave_out(value, defaults.get(key).unwrap_or(&Value::Null));
        }
    }
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

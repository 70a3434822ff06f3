//! What operators do with plugins.

use super::{Answer, Fake, refuse};
use ebbtide_proto::v1::plugins_server::Plugins;
use ebbtide_proto::v1::*;
use std::pin::Pin;
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status};

impl Fake {
    fn plugin(&self, name: &str, change: impl FnOnce(&mut Plugin)) -> Result<(), Status> {
        self.with(|state| {
            let found = state.plugins.iter_mut().find(|p| p.name == name);
            let plugin = found.ok_or_else(|| {
                refuse(Code::FailedPrecondition, "EB-PLUGIN-006", "there is none")
            })?;
            change(plugin);
            Ok(())
        })
    }
}

#[tonic::async_trait]
impl Plugins for Fake {
    async fn add_plugin(&self, request: Request<AddPluginRequest>) -> Answer<AddPluginResponse> {
        let asked = request.into_inner();
        self.with(|state| {
            state.log.push(format!(
                "add {} of {} bytes from {:?}, {:?}, {:?}, {}",
                asked.name,
                asked.component.len(),
                asked.address,
                asked.settings.get("key"),
                asked.multiplier,
                asked.on_failure
            ));
            let plugin = Plugin {
                name: asked.name,
                shadow: asked.shadow,
                enabled: true,
                added: true,
                // As the scheduler does: weighers count at once, a cost module once it is chosen.
                in_use: !asked.shadow && asked.multiplier.is_some(),
                ..Plugin::default()
            };
            state.plugins.push(plugin.clone());
            Ok(Response::new(AddPluginResponse {
                plugin: Some(plugin),
            }))
        })
    }

    async fn remove_plugin(
        &self,
        request: Request<RemovePluginRequest>,
    ) -> Answer<RemovePluginResponse> {
        let name = request.into_inner().name;
        self.plugin(&name, |_| ())?;
        self.with(|state| state.plugins.retain(|p| p.name != name));
        Ok(Response::new(RemovePluginResponse {}))
    }

    async fn change_plugin(
        &self,
        request: Request<ChangePluginRequest>,
    ) -> Answer<ChangePluginResponse> {
        let asked = request.into_inner();
        self.plugin(&asked.name, |plugin| {
            plugin.enabled = asked.enabled.unwrap_or(plugin.enabled);
            plugin.shadow = asked.shadow.unwrap_or(plugin.shadow);
            plugin.multiplier = match asked.reset_multiplier {
                true => None,
                false => asked.multiplier.or(plugin.multiplier),
            };
        })?;
        Ok(Response::new(ChangePluginResponse {}))
    }

    async fn use_cost_module(
        &self,
        request: Request<UseCostModuleRequest>,
    ) -> Answer<UseCostModuleResponse> {
        let asked = request.into_inner().name;
        let name = match asked.as_str() {
            "" => "partial_hour".to_owned(),
            name => {
                self.plugin(name, |plugin| plugin.in_use = true)?;
                asked
            }
        };
        Ok(Response::new(UseCostModuleResponse { name }))
    }

    async fn shadow_report(&self, _: Request<ShadowReportRequest>) -> Answer<ShadowReportResponse> {
        Ok(Response::new(self.with(|state| state.shadow.clone())))
    }

    type RecordRegionStream =
        Pin<Box<dyn Stream<Item = Result<RecordRegionResponse, Status>> + Send>>;

    async fn record_region(
        &self,
        _: Request<RecordRegionRequest>,
    ) -> Answer<Self::RecordRegionStream> {
        let pieces = ["{\"format\":", "\"else\"}"].map(|piece| {
            Ok(RecordRegionResponse {
                piece: piece.as_bytes().to_vec(),
            })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }
}

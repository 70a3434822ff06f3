//! A token that is refused before its end is replaced once.

use crate::curl::HttpService as _;
use crate::kit::OpenStack;
use ebbtide_client::{Bearer, ClientError, Credentials, IssuedToken, Region, TokenIssuer};
use ebbtide_proto::v1::ListServersRequest;
use std::sync::{Arc, Mutex};

/// Gives out its tokens one after another, each until it is refused.
#[derive(Debug)]
struct Tokens {
    left: Mutex<Vec<String>>,
    refused: Mutex<Vec<String>>,
}

impl TokenIssuer for Tokens {
    fn token<'a>(&'a self, refused: Option<&'a str>) -> IssuedToken<'a> {
        let mut left = self.left.lock().unwrap();
        if let Some(refused) = refused {
            self.refused.lock().unwrap().push(refused.to_owned());
            if left.len() > 1 {
                left.remove(0);
            }
        }
        let token = left[0].clone();
        Box::pin(async move { Ok(token) })
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let cloud = OpenStack::start("").await;
    let keystone = &cloud.keystone;
    let (revoked, good) = (
        keystone.token_of("ada").await,
        keystone.token_of("ada").await,
    );
    keystone.revoke(&revoked).await;
    let ask = async |tokens: &[&str]| {
        let tokens = Arc::new(Tokens {
            left: Mutex::new(tokens.iter().map(|&token| token.to_owned()).collect()),
            refused: Mutex::default(),
        });
        let issuer: Arc<dyn TokenIssuer> = tokens.clone();
        let credentials = Credentials {
            token: Bearer::issued(issuer),
            ..Credentials::default()
        };
        let endpoint = format!("http://{}", cloud.address());
        let mut region = Region::connect(&endpoint, &credentials).await.unwrap();
        let request = ListServersRequest {
            project_id: keystone.project.clone(),
            ..ListServersRequest::default()
        };
        let answer = region.servers.list_servers(request).await;
        let answer = answer.map(|answer| answer.into_inner().servers.len());
        let refused = tokens.refused.lock().unwrap().clone();
        (answer.map_err(ClientError::from), refused)
    };
    let (answer, refused) = ask(&[&good]).await;
    assert_eq!((answer.unwrap(), refused.len()), (2, 0));
    let (answer, refused) = ask(&[&revoked, &good]).await;
    assert_eq!((answer.unwrap(), refused), (2, vec![revoked.clone()]));
    // There is no third try.
    let (answer, refused) = ask(&[&revoked, "unknown", &good]).await;
    let error = answer.unwrap_err();
    assert_eq!(
        (error.code(), refused.len()),
        ("EB-KEYSTONE-004", 1),
        "{error}"
    );
    cloud.end().await;
}

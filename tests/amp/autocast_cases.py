"""What is run under autocast, by PyTorch for the figures and here for the tests.

In the expressions `t` is the library, `F` its `nn.functional`. Their inputs are made by `inputs`,
in one dtype.
"""

from __future__ import annotations

from typing import Any

EXPRESSIONS = """
t.matmul(a, a.mT) ; a @ a.mT ; t.mm(a, a.mT) ; t.bmm(b, b.mT) ; t.addmm(s, a, a.mT) ; a @ v
t.mv(a, v) ; t.dot(v, v) ; t.addmv(v[:2], a, v) ; t.addr(a, v[:2], v) ; t.outer(v, v)
t.inner(v, v) ; t.vdot(v, v) ; t.baddbmm(b[:, :, :2], b, b.mT) ; t.addbmm(s, b, b.mT)
t.einsum("ij,kj->ik", a, a) ; t.tensordot(a, a, dims=2) ; t.chain_matmul(a, a.mT)
t.linalg.multi_dot([a, a.mT, a]) ; t.linalg.vecdot(a, a) ; t.kron(a, a) ; t.cross(a, a, dim=1)
F.linear(a, a) ; F.linear(a, a, v[:2]) ; F.bilinear(v, v, b[:, :1].mT.expand(2, 3, 3))
F.conv1d(b, b) ; F.conv2d(i, i) ; F.conv3d(c, c) ; F.conv_transpose1d(b, b)
F.conv_transpose2d(i, i.transpose(0, 1)) ; F.conv_transpose3d(c, c)
F.scaled_dot_product_attention(b, b, b) ; F.prelu(a, v[:1]) ; a + a ; a * a ; a / a ; a - 1 ; a ** 2
t.pow(a, a) ; 2 ** a ; t.exp(a) ; t.log(p) ; t.log1p(p) ; t.expm1(a) ; t.sqrt(p) ; t.rsqrt(p)
t.reciprocal(p) ; t.tan(a) ; t.sin(a) ; t.acos(u) ; t.asin(u) ; t.cosh(a) ; t.sinh(a) ; t.erfinv(u)
t.tanh(a) ; t.sigmoid(a) ; t.log2(p) ; t.log10(p) ; t.sum(a) ; a.sum(1) ; a.mean() ; t.prod(a)
t.prod(a, 1) ; t.cumsum(a, 0) ; t.cumprod(a, 0) ; a.norm() ; t.norm(a, dim=1)
t.linalg.vector_norm(a) ; t.linalg.matrix_norm(a) ; t.logsumexp(a, 1) ; t.var(a) ; t.max(a)
t.amax(a, 1) ; t.dist(a, a) ; t.cdist(a, a) ; F.pdist(a) ; t.renorm(a, 2, 0, 1.0) ; t.trace(s)
t.quantile(a, 0.5) ; t.nanquantile(a, 0.5) ; t.median(a) ; t.polar(p, p) ; F.relu(a)
t.view_as_complex(s) ; F.gelu(a) ; F.silu(a) ; F.softplus(a) ; F.elu(a) ; F.glu(i, 1)
F.softmax(a, 1) ; F.log_softmax(a, 1) ; F.logsigmoid(a) ; F.layer_norm(a, (3,), v, v)
F.layer_norm(a, (3,)) ; F.rms_norm(a, (3,)) ; F.group_norm(i, 1) ; F.normalize(a)
F.instance_norm(i) ; F.batch_norm(a, v, p[0], training=False) ; F.local_response_norm(i, 2)
F.cosine_similarity(a, a) ; F.pairwise_distance(a, a) ; F.mse_loss(a, a) ; F.l1_loss(a, a)
F.smooth_l1_loss(a, a) ; F.huber_loss(a, a) ; F.cross_entropy(a, n) ; F.cross_entropy(a, w)
F.nll_loss(a, n) ; F.kl_div(a, p) ; F.binary_cross_entropy(h, h)
F.binary_cross_entropy_with_logits(a, h) ; F.poisson_nll_loss(a, p) ; F.gaussian_nll_loss(a, a, p)
F.hinge_embedding_loss(a, g) ; F.cosine_embedding_loss(a, a, t.ones(2))
F.margin_ranking_loss(v, v, g[0]) ; F.soft_margin_loss(a, g) ; F.triplet_margin_loss(a, a, a)
F.multi_margin_loss(a, n) ; F.multilabel_margin_loss(a, n[:, None].expand(2, 3))
F.multilabel_soft_margin_loss(a, h)
F.ctc_loss(b.transpose(0, 1), n[:, None], t.tensor([2, 2]), t.tensor([1, 1])) ; F.avg_pool1d(b, 2)
F.avg_pool2d(i, 1) ; F.avg_pool3d(c, 1) ; F.max_pool2d(i, 1) ; F.max_pool3d(c, 1)
F.adaptive_avg_pool2d(i, 1) ; F.adaptive_avg_pool3d(c, 1) ; F.interpolate(b, scale_factor=2.0)
F.interpolate(i, scale_factor=2.0, mode="bilinear")
F.interpolate(i, scale_factor=2.0, mode="bicubic")
F.grid_sample(i, i.permute(0, 2, 3, 1)[..., :2], align_corners=False) ; F.pad(b, (1, 1))
F.pad(b, (1, 1), mode="reflect") ; F.pad(b, (1, 1), mode="replicate")
F.pad(b, (1, 1), mode="circular") ; F.embedding(n, a) ; F.dropout(a, 0.5) ; t.cat([a, a])
t.stack([a, a]) ; t.where(n[:, None] > 0, a, 1.0) ; t.index_copy(a, 0, n, a)
t.index_put(a, (n,), a) ; t.scatter_add(a, 1, n[:, None], a) ; t.addcmul(a, a, a)
t.addcdiv(a, a, p) ; t.atan2(a, p) ; t.clamp(a, 0, 1) ; t.fft.fft(a).real ; t.fft.rfft(a).real
t.linalg.inv(s) ; t.inverse(s) ; t.linalg.det(s) ; t.linalg.solve(s, s) ; t.linalg.cholesky(q)
t.linalg.svdvals(a) ; t.linalg.eigvalsh(q) ; t.linalg.qr(a)[0] ; t.pinverse(a)
t.linalg.slogdet(s)[1] ; t.linalg.matrix_exp(s) ; t.linalg.lstsq(s, s)[0] ; t.linalg.eigh(q)[0]
t.linalg.svd(a)[1] ; t.cholesky_inverse(q) ; t.linalg.matrix_power(s, 2) ; t.cholesky_solve(q, q)
t.stft(z, 4, window=t.ones(4), return_complex=True).real ; F.adaptive_max_pool2d(i, 1)
F.adaptive_max_pool3d(c, 1)
F.max_unpool2d(i, t.arange(9).reshape(1, 1, 3, 3).expand(1, 2, 3, 3), 1) ; t.linalg.eigvals(s).real
t.linalg.eig(s)[0].real ; t.geqrf(s)[0] ; t.linalg.householder_product(a.mT, v[:2])
t.orgqr(a.mT, v[:2]) ; t.ormqr(a.mT, v[:2], a.mT) ; t.linalg.lu_factor(s)[0]
t.linalg.ldl_factor(q)[0] ; t.lu_solve(s, q, t.tensor([1, 2], dtype=t.int32)) ; t.logdet(q)
t.fft.hfft(a) ; t.std(a, 1) ; t.linalg.cond(s) ; t.lerp(a, a, 0.5) ; t.lgamma(p) ; t.erf(a)
t.logaddexp(a, a) ; t.hypot(a, a)
"""
CASES = [case.strip() for line in EXPRESSIONS.strip().splitlines() for case in line.split(" ; ")]


def inputs(t: Any, dtype: Any) -> dict[str, Any]:
    """What the expressions name; the values are small enough for all of them."""

    def make(*shape: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        return t.tensor([0.25 * (k % 7) - 0.6 for k in range(count)]).reshape(shape).to(dtype)

    given = {"a": make(2, 3), "b": make(2, 2, 3), "v": make(3), "i": make(1, 2, 3, 3)}
    given |= {"c": make(1, 1, 2, 2, 2), "z": make(16), "n": t.tensor([0, 1])}
    given |= {"p": given["a"].abs() + 0.5, "u": given["a"] / 2, "g": given["a"].sign()}
    given |= {"h": given["p"] / 4, "w": t.tensor([[0.2, 0.3, 0.5]] * 2)}
    square = t.tensor([[2.0, 0.5], [0.5, 1.0]]).to(dtype)
    return given | {"s": square + square.triu(1), "q": square, "t": t, "F": t.nn.functional}


def dtype_of(case: str, given: dict[str, Any]) -> str:
    """The dtype of an expression's value, by name."""
    value: Any = eval(case, dict(given))
    return str(value.dtype).rpartition(".")[2]


def network(t: Any) -> Any:
    """Layers of each kind, with weights that are the same in both libraries."""
    nn = t.nn
    layers = nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3), nn.LayerNorm(3)
    net = nn.Sequential(*layers)
    with t.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(t.sin(t.arange(float(p.numel())).reshape(p.shape) + k))
    return net


def step(t: Any, net: Any, autocast: Any) -> list[Any]:
    """The loss of one batch, then the gradients of the parameters."""
    x = t.cos(t.arange(18.0)).reshape(2, 1, 3, 3)
    with autocast:
        loss = t.nn.functional.cross_entropy(net(x), t.tensor([0, 2]))
    loss.backward()
    return [loss, *(p.grad for p in net.parameters())]


def scaled_steps(t: Any) -> list[list[float]]:
    """What a scaler makes of gradients, of which the third and the fourth are not finite: scale,
    count, parameter after each step."""
    w = t.tensor([1.0, -2.0], requires_grad=True)
    optimizer = t.optim.SGD([w], lr=0.1, momentum=0.9)
    scaler = t.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    rows = []
    for factor in (1.0, 0.5, float("inf"), float("nan"), 2.0, 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((w * w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        state = scaler.state_dict()
        rows.append([state["scale"], state["_growth_tracker"], *w.tolist()])
    return rows

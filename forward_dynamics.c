/*
 * forward_dynamics of mechanism 'puma560', written by linkwise
 * joints in order, with their places in q and v, and the links they move:
 *   q[0] v[0] 'joint1' (revolute) moves 'link1'
 *   q[1] v[1] 'joint2' (revolute) moves 'link2'
 *   q[2] v[2] 'joint3' (revolute) moves 'link3'
 *   q[3] v[3] 'joint4' (revolute) moves 'link4'
 *   q[4] v[4] 'joint5' (revolute) moves 'link5'
 *   q[5] v[5] 'joint6' (revolute) moves 'link6'
 */
#ifdef __cplusplus
#include <math.h>
#include <stddef.h>
#define restrict __restrict
extern "C" {
#endif
/*
 * forward_dynamics: one state; forward_dynamics_batch: n states in contiguous rows.
 *   in  q: 6
 *   in  v: 6
 *   in  tau: 6
 *   out a: 6
 *   operations per state: 330 add, 4 div, 370 mul, 5 sincos
 */
#include <math.h>
#include <stddef.h>

#ifdef FP_FAST_FMA
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

void forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict a)
{
    const double q_1 = q[1];
    const double q_2 = q[2];
    const double q_3 = q[3];
    const double q_4 = q[4];
    const double q_5 = q[5];
    const double v_0 = v[0];
    const double v_1 = v[1];
    const double v_2 = v[2];
    const double v_3 = v[3];
    const double v_4 = v[4];
    const double v_5 = v[5];
    const double tau_5 = tau[5];
    const double tau_4 = tau[4];
    const double tau_3 = tau[3];
    const double tau_2 = tau[2];
    const double tau_1 = tau[1];
    const double tau_0 = tau[0];
    const double t0 = cos(q_1);
    const double t1 = sin(q_1);
    const double t2 = cos(q_2);
    const double t3 = sin(q_2);
    const double t4 = cos(q_3);
    const double t5 = sin(q_3);
    const double t6 = cos(q_4);
    const double t7 = sin(q_4);
    const double t8 = cos(q_5);
    const double t9 = sin(q_5);

    /* angular velocities, phi*, base to tip: link2 */
    const double t10 = v_0 * t1;
    const double t11 = v_0 * t0;
    const double t12 = v_1 * t11;
    const double t13 = v_1 * t10;
    const double t14 = 9.81 * t1;
    const double t15 = 9.81 * t0;

    /* angular velocities, phi*, base to tip: link3 */
    const double t16 = t3 * t11;
    const double t17 = FMA(t2, t10, t16);
    const double t18 = t2 * t11;
    const double t19 = FMA(t3, t10, -t18);
    const double t20 = v_1 + v_2;
    const double t21 = t10 * t10;
    const double t22 = t10 * t11;
    const double t23 = t11 * t11;
    const double t24 = FMA(0.4318, t22, t15);
    const double t25 = v_1 * v_1;
    const double t26 = t23 + t25;
    const double t27 = FMA(-0.4318, t26, t14);
    const double t28 = t2 * t12;
    const double t29 = FMA(t3, t13, -t28);
    const double t30 = FMA(v_2, t19, t29);
    const double t31 = t3 * t12;
    const double t32 = FMA(t2, t13, t31);
    const double t33 = FMA(v_2, t17, t32);
    const double t34 = t3 * t24;
    const double t35 = FMA(t2, t27, t34);
    const double t36 = t2 * t24;
    const double t37 = FMA(t3, t27, -t36);

    /* angular velocities, phi*, base to tip: link4 */
    const double t38 = t5 * t20;
    const double t39 = FMA(t4, t17, -t38);
    const double t40 = t4 * t20;
    const double t41 = FMA(t5, t17, t40);
    const double t42 = v_3 * t39;
    const double t43 = FMA(t5, t30, -t42);
    const double t44 = v_3 - t19;
    const double t45 = t17 * t17;
    const double t46 = t19 * t19;
    const double t47 = t20 * t20;
    const double t48 = t46 + t47;
    const double t49 = t45 + t47;
    const double t50 = t45 + t46;
    const double t51 = 0.15005 * t50;
    const double t52 = t17 * t19;
    const double t53 = t17 * t20;
    const double t54 = t19 * t20;
    const double t55 = t33 - t53;
    const double t56 = t33 + t53;
    const double t57 = FMA(0.0203, t56, -t51);
    const double t58 = FMA(0.8636, t13, t57);
    const double t59 = t54 - t30;
    const double t60 = t30 + t54;
    const double t61 = t4 * t30;
    const double t62 = FMA(v_3, t41, t61);
    const double t63 = 0.0203 * t48;
    const double t64 = FMA(0.15005, t55, t63);
    const double t65 = t64 - t35;

    /* articulated inertias, psi, tip to base: link3 */
    const double t66 = 0.89133 * t35;
    const double t67 = FMA(0.025374999999999998, t37, t66);

    /* angular velocities, phi*, base to tip: link4 */
    const double t68 = 0.0203 * t52;
    const double t69 = FMA(0.15005, t59, t68);
    const double t70 = t37 + t69;

    /* articulated inertias, psi, tip to base: link3 */
    const double t71 = 0.0038075187499999994 * t59;
    const double t72 = FMA(0.1384816665, t55, -t71);

    /* angular velocities, phi*, base to tip: link4 */
    const double t73 = t5 * t58;
    const double t74 = FMA(t4, t65, t73);
    const double t75 = t4 * t58;
    const double t76 = FMA(t5, t65, -t75);

    /* angular velocities, phi*, base to tip: link5 */
    const double t77 = t7 * t44;
    const double t78 = FMA(t6, t39, t77);
    const double t79 = t6 * t44;
    const double t80 = FMA(t7, t39, -t79);
    const double t81 = v_4 + t41;
    const double t82 = t41 * t41;
    const double t83 = FMA(t39, t39, t82);
    const double t84 = FMA(0.4318, t83, t70);
    const double t85 = t7 * t84;
    const double t86 = t39 * t41;
    const double t87 = t39 * t44;
    const double t88 = t41 * t44;
    const double t89 = t33 - t86;
    const double t90 = t33 + t86;

    /* articulated inertias, psi, tip to base: link4 */
    const double t91 = 0.0007500000000000083 * t89;
    const double t92 = FMA(0.0006499999999999915, t90, t91);

    /* angular velocities, phi*, base to tip: link5 */
    const double t93 = t43 + t87;
    const double t94 = t87 - t43;
    const double t95 = FMA(0.4318, t93, -t74);
    const double t96 = FMA(-t6, t95, t85);

    /* articulated inertias, psi, tip to base: link4 */
    const double t97 = 0.0006499999999999915 * t94;
    const double t98 = FMA(7.589415207398531e-18, t93, t97);

    /* angular velocities, phi*, base to tip: link5 */
    const double t99 = t62 - t88;
    const double t100 = t62 + t88;
    const double t101 = FMA(0.4318, t99, t76);

    /* articulated inertias, psi, tip to base: link4 */
    const double t102 = 0.0007500000000000083 * t100;
    const double t103 = FMA(7.589415207398531e-18, t99, -t102);

    /* angular velocities, phi*, base to tip: link5 */
    const double t104 = t7 * t33;
    const double t105 = FMA(t6, t62, t104);
    const double t106 = t6 * t33;
    const double t107 = FMA(-t7, t62, t106);
    const double t108 = FMA(v_4, t80, t105);
    const double t109 = FMA(v_4, t78, t107);

    /* angular velocities, phi*, base to tip: link6 */
    const double t110 = t9 * t81;
    const double t111 = FMA(t8, t78, -t110);
    const double t112 = t8 * t81;
    const double t113 = FMA(t9, t78, t112);
    const double t114 = v_5 - t80;
    const double t115 = t9 * t43;
    const double t116 = FMA(-t8, t108, t115);
    const double t117 = FMA(-v_5, t113, t116);

    /* articulated inertias, psi, tip to base: link6 */
    const double t118 = FMA(-t113, t114, t117);
    const double t119 = t111 * t113;
    const double t120 = 1.9999999999999998e-05 * t118;

    /* angular velocities, phi*, base to tip: link6 */
    const double t121 = t8 * t43;
    const double t122 = FMA(t9, t108, t121);
    const double t123 = FMA(-v_5, t111, t122);

    /* articulated inertias, psi, tip to base: link6 */
    const double t124 = FMA(t111, t114, -t123);
    const double t125 = 1.9999999999999998e-05 * t124;

    /* articulated inertias, psi, tip to base: link5 */
    const double t126 = FMA(t80, t81, t108);
    const double t127 = t78 * t80;

    /* articulated inertias, psi, tip to base: link6 */
    const double t128 = t109 - t119;
    const double t129 = t109 + t119;
    const double t130 = 1.9999999999999998e-05 * t128;
    const double t131 = FMA(1.9999999999999998e-05, t129, t130);

    /* articulated inertias, psi, tip to base: link5 */
    const double t132 = FMA(t78, t81, t109);
    const double t133 = t81 * t81;
    const double t134 = FMA(t78, t78, t133);
    const double t135 = 0.0028799999999999997 * t134;
    const double t136 = t43 - t127;
    const double t137 = t43 + t127;
    const double t138 = 0.00042216000000000004 * t126;
    const double t139 = FMA(0.0028799999999999997, t101, t138);
    const double t140 = 0.00042216000000000004 * t136;
    const double t141 = FMA(0.00019999999999999998, t137, t140);
    const double t142 = FMA(0.0028799999999999997, t96, -t141);
    const double t143 = 0.0028799999999999997 * t136;
    const double t144 = 0.0028799999999999997 * t126;
    const double t145 = tau_5 + t131;
    const double t146 = FMA(0.00020607455691119684, t145, -t131);
    const double t147 = FMA(0.00019999999999999998, t132, -t146);

    /* psi*, E_phi*, base to tip: link6 */
    const double t148 = 5.151863922779921 * t145;

    /* articulated inertias, psi, tip to base: link5 */
    const double t149 = t9 * t125;
    const double t150 = FMA(t8, t120, t149);
    const double t151 = t9 * t120;
    const double t152 = FMA(t8, t125, -t151);
    const double t153 = t139 - t150;
    const double t154 = t142 + t152;

    /* articulated inertias, psi, tip to base: link4 */
    const double t155 = 0.0002021682429822764 * t7;
    const double t156 = t7 * t155;
    const double t157 = 0.00054216 - t156;
    const double t158 = t156 + 0.00033999175701772356;
    const double t159 = t158 + 0.0013;
    const double t160 = 0.0028799999999999997 * t6;
    const double t161 = 0.0028799999999999997 * t7;
    const double t162 = 0.002869206667570582 * t6;
    const double t163 = 0.002869206667570582 * t7;
    const double t164 = 4.8406623577801344e-05 * t7;
    const double t165 = t7 * t164;
    const double t166 = t6 * t164;
    const double t167 = FMA(-0.4318, t166, t163);
    const double t168 = t165 + 0.42995159337642225;
    const double t169 = 0.43000000000000005 - t165;
    const double t170 = t169 + 0.82;
    const double t171 = (-0.18567400000000003) - t160;
    const double t172 = t171 - t160;
    const double t173 = FMA(-0.4318, t172, t157);
    const double t174 = t173 + 0.1684409248;
    const double t175 = t171 + (-0.369656);
    const double t176 = FMA(0.4318, t168, t162);
    const double t177 = t162 + t176;
    const double t178 = FMA(0.4318, t177, 0.0006397533866830296);
    const double t179 = t178 + 0.1684409248;
    const double t180 = t176 + 0.369656;
    const double t181 = t168 + 0.82;
    const double t182 = 0.0012435839999999998 * t7;
    const double t183 = FMA(t6, t155, t182);
    const double t184 = t159 + 0.19079062612368;
    const double t185 = 1.0 / t184;
    const double t186 = t183 * t185;
    const double t187 = FMA(-t183, t186, t174);
    const double t188 = t159 * t185;
    const double t189 = t161 * t185;
    const double t190 = FMA(t183, t189, t175);
    const double t191 = FMA(-t183, t188, t183);
    const double t192 = FMA(-t159, t188, t159);
    const double t193 = FMA(t159, t189, -t161);
    const double t194 = FMA(-t161, t189, 1.25);
    const double t195 = tau_4 - t154;
    const double t196 = FMA(0.0037476848713255714, t195, t154);
    const double t197 = FMA(0.01680785540895983, t195, -t143);
    const double t198 = t7 * t147;
    const double t199 = FMA(-t6, t153, t198);
    const double t200 = FMA(-0.0012435839999999998, t126, t199);
    const double t201 = t103 + t200;
    const double t202 = t6 * t147;
    const double t203 = FMA(t7, t153, t202);
    const double t204 = t92 + t203;
    const double t205 = t7 * t135;
    const double t206 = FMA(-t6, t197, t205);
    const double t207 = t6 * t135;
    const double t208 = FMA(t7, t197, t207);
    const double t209 = FMA(0.4318, t206, -t196);
    const double t210 = t209 - t98;

    /* articulated inertias, psi, tip to base: link3 */
    const double t211 = t179 - t187;
    const double t212 = t5 * t211;
    const double t213 = t5 * t212;
    const double t214 = t187 + t213;
    const double t215 = t179 - t213;
    const double t216 = t180 + t190;
    const double t217 = t4 * t216;
    const double t218 = t5 * t217;
    const double t219 = t4 * t217;
    const double t220 = t219 - t180;
    const double t221 = t219 - t190;
    const double t222 = t5 * t167;
    const double t223 = t4 * t167;
    const double t224 = t5 * t193;
    const double t225 = t4 * t193;
    const double t226 = t194 - t181;
    const double t227 = t5 * t226;
    const double t228 = t5 * t227;
    const double t229 = t181 + t228;
    const double t230 = t194 - t228;
    const double t231 = t4 * t227;
    const double t232 = t4 * t166;
    const double t233 = t5 * t166;
    const double t234 = FMA(0.15005, t233, t220);
    const double t235 = 0.15005 * t232;
    const double t236 = 0.0203 * t231;
    const double t237 = FMA(0.15005, t229, -t236);
    const double t238 = t237 - t224;
    const double t239 = t238 - t224;
    const double t240 = t238 + 0.78792;
    const double t241 = t229 + 4.8;
    const double t242 = 0.0203 * t233;
    const double t243 = t235 + t242;
    const double t244 = t235 - t218;
    const double t245 = t218 + t242;
    const double t246 = t218 + t243;
    const double t247 = 0.0203 * t246;
    const double t248 = FMA(0.15005, t221, t247);
    const double t249 = FMA(0.0203, t232, t221);
    const double t250 = FMA(t5, t191, t248);
    const double t251 = t250 + 0.0551544;
    const double t252 = t249 + 0.336;
    const double t253 = 0.15005 * t231;
    const double t254 = FMA(0.0203, t230, -t253);
    const double t255 = t225 + t254;
    const double t256 = t225 + t255;
    const double t257 = 0.0203 * t256;
    const double t258 = FMA(0.15005, t239, t257);
    const double t259 = t192 + t258;
    const double t260 = t259 + 0.14183706799999998;
    const double t261 = t230 + 4.8;
    const double t262 = FMA(0.15005, t170, t222);
    const double t263 = t222 + t262;
    const double t264 = FMA(0.15005, t263, t214);
    const double t265 = t264 + 0.218857068;
    const double t266 = FMA(-0.0203, t170, t223);
    const double t267 = t170 + 4.8;
    const double t268 = t223 + t266;
    const double t269 = FMA(-0.0203, t268, t215);
    const double t270 = 0.15005 * t223;
    const double t271 = FMA(0.0203, t262, -t270);
    const double t272 = FMA(-t4, t212, t271);
    const double t273 = t269 + 0.10951999999999999;
    const double t274 = (-0.78792) - t262;
    const double t275 = 0.15005 * t244;
    const double t276 = FMA(0.0203, t234, t275);
    const double t277 = FMA(t4, t191, t276);
    const double t278 = t234 + (-0.336);
    const double t279 = t273 + 0.576873331938;
    const double t280 = 1.0 / t279;
    const double t281 = t272 * t280;
    const double t282 = FMA(-t272, t281, t265);
    const double t283 = t251 * t280;
    const double t284 = FMA(-t251, t283, t260);
    const double t285 = FMA(-t272, t283, t277);
    const double t286 = t273 * t280;
    const double t287 = t252 * t280;
    const double t288 = FMA(-t272, t287, t244);
    const double t289 = FMA(-t251, t287, t240);
    const double t290 = FMA(-t252, t287, t241);
    const double t291 = t266 * t280;
    const double t292 = FMA(-t272, t291, t274);
    const double t293 = FMA(t251, t291, t243);
    const double t294 = FMA(-t266, t291, t267);
    const double t295 = FMA(t252, t291, t232);

    /* articulated inertias, psi, tip to base: link2 */
    const double t296 = t288 + t293;
    const double t297 = t292 + t289;
    const double t298 = t2 * t297;
    const double t299 = FMA(t3, t296, t298);
    const double t300 = FMA(t2, t299, -t289);
    const double t301 = FMA(t3, t299, -t293);
    const double t302 = t294 - t290;

    /* articulated inertias, psi, tip to base: link3 */
    const double t303 = t245 * t280;
    const double t304 = FMA(-t272, t303, t278);
    const double t305 = FMA(-t272, t286, t272);
    const double t306 = FMA(-t251, t303, t255);
    const double t307 = FMA(-t251, t286, t251);
    const double t308 = FMA(-t245, t303, t261);
    const double t309 = FMA(-t273, t303, t245);
    const double t310 = FMA(t252, t303, t231);
    const double t311 = FMA(-t273, t287, t252);
    const double t312 = FMA(t266, t303, t233);
    const double t313 = FMA(-t273, t291, t266);
    const double t314 = FMA(-t273, t286, t273);

    /* articulated inertias, psi, tip to base: link2 */
    const double t315 = t3 * t311;
    const double t316 = FMA(t2, t313, t315);
    const double t317 = t3 * t310;
    const double t318 = FMA(t2, t312, t317);
    const double t319 = FMA(-0.4318, t318, t301);
    const double t320 = t319 - t309;

    /* articulated inertias, psi, tip to base: link3 */
    const double t321 = 0.0038075187499999994 * t52;
    const double t322 = FMA(0.011273199, t56, t321);
    const double t323 = FMA(0.34123495800000003, t60, -t322);
    const double t324 = t46 - t47;
    const double t325 = FMA(0.1384816665, t324, t323);
    const double t326 = t47 - t45;
    const double t327 = t45 - t46;
    const double t328 = FMA(-0.769752588, t13, t325);
    const double t329 = 0.1384816665 * t52;
    const double t330 = FMA(-0.011273199, t60, t329);
    const double t331 = FMA(0.016765112500000012, t56, t330);
    const double t332 = FMA(0.0038075187499999994, t326, t331);
    const double t333 = FMA(0.02191385, t13, t332);
    const double t334 = 0.89133 * t60;
    const double t335 = FMA(0.025374999999999998, t56, -t334);
    const double t336 = 0.016765112500000012 * t52;
    const double t337 = FMA(0.34123495800000003, t52, -t336);
    const double t338 = t337 + t72;
    const double t339 = FMA(-0.011273199, t327, t338);
    const double t340 = t339 - t67;
    const double t341 = 0.89133 * t52;
    const double t342 = FMA(0.025374999999999998, t48, t341);
    const double t343 = 0.025374999999999998 * t52;
    const double t344 = FMA(0.89133, t49, t343);
    const double t345 = t208 + t344;
    const double t346 = tau_3 + t204;
    const double t347 = FMA(t186, t346, t201);
    const double t348 = FMA(t188, t346, -t204);
    const double t349 = FMA(-t189, t346, t144);
    const double t350 = t4 * t347;
    const double t351 = FMA(t5, t210, -t350);
    const double t352 = t5 * t347;
    const double t353 = FMA(t4, t210, t352);
    const double t354 = FMA(-0.15005, t208, t351);
    const double t355 = FMA(0.0203, t208, t353);
    const double t356 = t328 + t354;
    const double t357 = t340 - t355;
    const double t358 = t4 * t206;
    const double t359 = FMA(t5, t349, -t358);
    const double t360 = t5 * t206;
    const double t361 = FMA(t4, t349, t360);
    const double t362 = t342 + t359;
    const double t363 = t335 - t361;
    const double t364 = 0.0203 * t361;
    const double t365 = FMA(0.15005, t359, -t364);
    const double t366 = t365 - t348;
    const double t367 = t333 + t366;

    /* articulated inertias, psi, tip to base: link2 */
    const double t368 = t284 - t282;
    const double t369 = 2.0 * t2;
    const double t370 = t295 * t369;
    const double t371 = FMA(t3, t302, t370);
    const double t372 = FMA(-t3, t371, t294);
    const double t373 = t285 * t369;
    const double t374 = FMA(t3, t368, -t373);
    const double t375 = FMA(t2, t374, t285);
    const double t376 = t3 * t374;
    const double t377 = t282 + t376;
    const double t378 = t284 - t376;
    const double t379 = FMA(0.4318, t372, -t316);
    const double t380 = t379 - t316;
    const double t381 = FMA(0.4318, t380, t314);
    const double t382 = t377 + 1.03118515;
    const double t383 = t381 + 0.6200840000000001;
    const double t384 = t383 + 2.324814845;
    const double t385 = 1.0 / t384;
    const double t386 = t2 * t305;
    const double t387 = FMA(t3, t307, -t386);
    const double t388 = FMA(0.4318, t300, t387);
    const double t389 = t3 * t305;
    const double t390 = FMA(t2, t307, t389);
    const double t391 = FMA(0.4318, t320, -t390);
    const double t392 = t388 + (-0.26917800000000003);
    const double t393 = t391 + (-0.023750999999999998);
    const double t394 = t2 * t304;
    const double t395 = FMA(t3, t306, -t394);
    const double t396 = FMA(0.4318, t395, t375);
    const double t397 = t3 * t304;
    const double t398 = FMA(t2, t306, t397);
    const double t399 = FMA(0.4318, t308, t398);
    const double t400 = t398 + t399;
    const double t401 = FMA(0.4318, t400, t378);
    const double t402 = t401 + 1.50501635;
    const double t403 = (-0.0070992) - t396;
    const double t404 = t392 * t385;
    const double t405 = FMA(-t392, t404, t382);
    const double t406 = t393 * t385;
    const double t407 = FMA(-t393, t406, t402);
    const double t408 = FMA(-t392, t406, t403);

    /* articulated inertias, psi, tip to base: link1 */
    const double t409 = t407 - t405;

    /* articulated inertias, psi, tip to base: link2 */
    const double t410 = 0.6903913435 * t22;
    const double t411 = FMA(0.0141984, t13, -t410);
    const double t412 = FMA(0.14625280000000007, t12, t411);
    const double t413 = 0.0141984 * t12;
    const double t414 = FMA(0.023750999999999998, t22, -t413);
    const double t415 = FMA(-3.349975204, t13, t414);
    const double t416 = t23 - t25;
    const double t417 = FMA(-0.023750999999999998, t416, t412);
    const double t418 = t25 - t21;
    const double t419 = FMA(-0.6903913435, t418, t415);
    const double t420 = t21 - t23;
    const double t421 = 0.07312640000000004 * t22;
    const double t422 = FMA(1.674987602, t22, -t421);
    const double t423 = FMA(-0.0070992, t420, t422);
    const double t424 = 1.024164 * t1;
    const double t425 = FMA(37.2347379, t0, -t424);
    const double t426 = t423 + t425;
    const double t427 = tau_2 - t357;
    const double t428 = FMA(t281, t427, t356);
    const double t429 = FMA(t283, t427, t367);
    const double t430 = FMA(t286, t427, t357);
    const double t431 = FMA(t287, t427, t362);
    const double t432 = FMA(t291, t427, t345);
    const double t433 = FMA(t303, t427, t363);
    const double t434 = t3 * t431;
    const double t435 = FMA(t2, t432, t434);
    const double t436 = FMA(-0.4318, t435, t430);
    const double t437 = t426 + t436;

    /* articulated inertias, psi, tip to base: link1 */
    const double t438 = tau_1 - t437;

    /* articulated inertias, psi, tip to base: link2 */
    const double t439 = t2 * t428;
    const double t440 = FMA(t3, t429, -t439);
    const double t441 = t417 + t440;
    const double t442 = t3 * t428;
    const double t443 = FMA(t2, t429, t442);
    const double t444 = FMA(0.4318, t433, t443);
    const double t445 = t419 - t444;

    /* articulated inertias, psi, tip to base: link1 */
    const double t446 = FMA(t404, t438, t441);
    const double t447 = FMA(t406, t438, t445);
    const double t448 = t1 * t446;
    const double t449 = FMA(t0, t447, t448);

    /* psi*, E_phi*, base to tip: link1 */
    const double t450 = tau_0 - t449;

    /* articulated inertias, psi, tip to base: link1 */
    const double t451 = 2.0 * t0;
    const double t452 = t408 * t451;
    const double t453 = FMA(-t1, t409, t452);
    const double t454 = FMA(t1, t453, t407);
    const double t455 = t454 + 1.134029968642;
    const double t456 = 1.0 / t455;

    /* psi*, E_phi*, base to tip: link1 */
    const double t457 = t456 * t450;

    /* psi*, E_phi*, base to tip: link2 */
    const double t458 = t1 * t457;
    const double t459 = t0 * t457;
    const double t460 = t406 * t459;
    const double t461 = FMA(t404, t458, t460);
    const double t462 = FMA(t385, t438, -t461);

    /* psi*, E_phi*, base to tip: link3 */
    const double t463 = 0.4318 * t462;
    const double t464 = 0.4318 * t459;
    const double t465 = t3 * t459;
    const double t466 = FMA(t2, t458, t465);
    const double t467 = t2 * t459;
    const double t468 = FMA(t3, t458, -t467);
    const double t469 = t3 * t463;
    const double t470 = t2 * t463;
    const double t471 = t281 * t466;
    const double t472 = FMA(t283, t468, -t471);
    const double t473 = FMA(t286, t462, t472);
    const double t474 = t291 * t470;
    const double t475 = FMA(t287, t469, t474);
    const double t476 = FMA(t303, t464, t475);
    const double t477 = t473 - t476;
    const double t478 = FMA(t280, t427, -t477);
    const double t479 = t462 + t478;

    /* psi*, E_phi*, base to tip: link4 */
    const double t480 = FMA(0.15005, t468, -t469);
    const double t481 = FMA(0.0203, t468, -t464);
    const double t482 = t188 * t468;
    const double t483 = 0.15005 * t466;
    const double t484 = FMA(-0.0203, t479, t483);
    const double t485 = t484 - t470;

    /* psi*, E_phi*, base to tip: link5 */
    const double t486 = t7 * t485;

    /* psi*, E_phi*, base to tip: link4 */
    const double t487 = t4 * t466;
    const double t488 = FMA(-t5, t479, t487);
    const double t489 = FMA(t186, t488, -t482);

    /* psi*, E_phi*, base to tip: link5 */
    const double t490 = t7 * t488;

    /* psi*, E_phi*, base to tip: link4 */
    const double t491 = t5 * t466;
    const double t492 = FMA(t4, t479, t491);
    const double t493 = t5 * t481;
    const double t494 = FMA(t4, t480, t493);
    const double t495 = t4 * t481;
    const double t496 = FMA(t5, t480, -t495);
    const double t497 = FMA(-t189, t496, t489);
    const double t498 = FMA(t185, t346, -t497);
    const double t499 = t498 - t468;

    /* psi*, E_phi*, base to tip: link5 */
    const double t500 = FMA(-t6, t499, t490);

    /* psi*, E_phi*, base to tip: link6 */
    const double t501 = FMA(0.00020607455691119684, t500, t148);

    /* psi*, E_phi*, base to tip: link5 */
    const double t502 = FMA(0.4318, t492, t494);
    const double t503 = FMA(t6, t502, t486);
    const double t504 = 0.0037476848713255714 * t492;
    const double t505 = FMA(0.01680785540895983, t503, t504);
    const double t506 = FMA(5.83606090588883, t195, -t505);

    /* results */
    a[0] = t457;
    a[1] = t462;
    a[2] = t478;
    a[3] = t498;
    a[4] = t506;
    a[5] = t501;
}

void forward_dynamics_batch(size_t n, const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict a)
{
    for (size_t i = 0; i < n; ++i)
        forward_dynamics(q + i * 6, v + i * 6, tau + i * 6, a + i * 6);
}

#ifdef __cplusplus
}
#undef restrict
#endif

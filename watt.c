/*
 * closed_forward_dynamics of mechanism 'watt', written by linkwise
 * joints in order, with their places in q and v, and the links they move:
 *   q[0] v[0] 'A' (revolute) moves 'crank'
 *   q[1] v[1] 'D' (revolute) moves 'rocker'
 *   q[2] v[2] 'G' (revolute) moves 'output'
 *   q[3] v[3] 'B' (revolute) moves 'coupler'
 *   q[4] v[4] 'E' (revolute) moves 'link'
 */
#ifdef __cplusplus
#include <math.h>
#include <stddef.h>
#define restrict __restrict
extern "C" {
#endif
/*
 * closed_forward_dynamics: one state; closed_forward_dynamics_batch: n states in contiguous rows.
 *   in  q: 5
 *   in  v: 5
 *   in  tau: 5
 *   out a: 5
 *   operations per state: 167 add, 16 compare, 6 div, 223 mul, 10 neg, 48 select, 5 sincos, 1 sqrt
 */
#include <math.h>
#include <stddef.h>

#ifdef FP_FAST_FMA
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

void closed_forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict a)
{
    const double q_0 = q[0];
    const double q_1 = q[1];
    const double q_2 = q[2];
    const double q_3 = q[3];
    const double q_4 = q[4];
    const double v_0 = v[0];
    const double v_3 = v[3];
    const double v_1 = v[1];
    const double v_4 = v[4];
    const double v_2 = v[2];
    const double tau_2 = tau[2];
    const double tau_3 = tau[3];
    const double tau_0 = tau[0];
    const double tau_1 = tau[1];
    const double tau_4 = tau[4];
    const double t0 = q_0 + 1.0121970114513341;
    const double t1 = cos(t0);
    const double t2 = sin(t0);
    const double t3 = q_1 + 1.2220253232109899;
    const double t4 = cos(t3);
    const double t5 = sin(t3);
    const double t6 = q_2 + 1.4056476493802696;
    const double t7 = cos(t6);
    const double t8 = sin(t6);
    const double t9 = q_3 + (-0.1350056944270276);
    const double t10 = cos(t9);
    const double t11 = sin(t9);
    const double t12 = q_4 + (-0.9770466600841259);
    const double t13 = cos(t12);
    const double t14 = sin(t12);

    /* angular velocities, base to tip: coupler */
    const double t15 = v_0 + v_3;

    /* angular velocities, base to tip: link */
    const double t16 = v_1 + v_4;

    /* around the loops: C */
    const double t17 = 0.7689462856182713 * t11;
    const double t18 = FMA(0.6393133893747761, t10, t17);
    const double t19 = 0.7689462856182713 * t10;
    const double t20 = FMA(0.6393133893747761, t11, -t19);
    const double t21 = FMA(-0.09433981132056604, t18, (-0.30000000000000004));
    const double t22 = FMA(0.09433981132056604, t20, (-0.22));
    const double t23 = t2 * t20;
    const double t24 = FMA(t1, t18, -t23);
    const double t25 = t2 * t18;
    const double t26 = FMA(t1, t20, t25);
    const double t27 = FMA(0.4, t24, t21);
    const double t28 = FMA(-0.4, t26, t22);
    const double t29 = t5 * t26;
    const double t30 = FMA(t4, t24, t29);
    const double t31 = t5 * t24;
    const double t32 = FMA(t4, t26, -t31);
    const double t33 = 0.14951259010043313 * t32;
    const double t34 = FMA(0.26485087389219586, t30, t33);
    const double t35 = 0.26485087389219586 * t32;
    const double t36 = FMA(0.14951259010043313, t30, -t35);
    const double t37 = t27 + t34;
    const double t38 = t28 + t36;

    /* (no section) */
    const double t39 = t37 - t21;
    const double t40 = t37 - (-0.30000000000000004);
    const double t41 = t38 - t22;
    const double t42 = t38 - (-0.22);

    /* around the loops: F */
    const double t43 = 0.24253562503633289 * t14;
    const double t44 = FMA(0.9701425001453319, t13, t43);
    const double t45 = 0.24253562503633289 * t13;
    const double t46 = FMA(0.9701425001453319, t14, -t45);
    const double t47 = FMA(-0.23409399821439247, t44, (-0.32));
    const double t48 = FMA(0.23409399821439247, t46, (-0.07999999999999997));
    const double t49 = t5 * t46;
    const double t50 = FMA(t4, t44, -t49);
    const double t51 = t5 * t44;
    const double t52 = FMA(t4, t46, t51);
    const double t53 = FMA(-0.4, t50, t47);
    const double t54 = FMA(0.75, t50, t53);
    const double t55 = FMA(0.4, t52, t48);
    const double t56 = FMA(-0.75, t52, t55);
    const double t57 = t8 * t52;
    const double t58 = FMA(t7, t50, t57);
    const double t59 = t8 * t50;
    const double t60 = FMA(t7, t52, -t59);
    const double t61 = 0.304138126514911 * t58;
    const double t62 = 0.304138126514911 * t60;
    const double t63 = t54 + t61;
    const double t64 = t56 - t62;

    /* (no section) */
    const double t65 = t63 - t47;
    const double t66 = t63 - (-0.32);
    const double t67 = t64 - t48;
    const double t68 = t64 - (-0.07999999999999997);

    /* articulated inertias, forces, tip to base: crank + rocker + output + coupler + link */
    const double t69 = 0.907425 * t7;

    /* (no section) */
    const double t70 = -t40;
    const double t71 = -t39;
    const double t72 = -t36;
    const double t73 = v_1 * t36;
    const double t74 = v_3 * t42;
    const double t75 = v_3 * t40;

    /* elimination of loops: crank + rocker + output + coupler + link */
    const double t76 = t40 * t40;

    /* (no section) */
    const double t77 = v_0 * t41;
    const double t78 = v_0 * t39;

    /* elimination of loops: crank + rocker + output + coupler + link */
    const double t79 = t39 * t39;

    /* (no section) */
    const double t80 = v_3 * t78;
    const double t81 = FMA(v_0, t75, -t80);
    const double t82 = t75 + t78;
    const double t83 = v_3 * t77;
    const double t84 = FMA(v_0, t74, -t83);
    const double t85 = t74 + t77;
    const double t86 = v_1 * t34;
    const double t87 = t15 * t86;
    const double t88 = FMA(-v_1, t82, t87);
    const double t89 = t81 + t88;
    const double t90 = t86 - t82;
    const double t91 = t15 * t73;
    const double t92 = FMA(-v_1, t85, t91);
    const double t93 = t84 + t92;
    const double t94 = t85 - t73;
    const double t95 = v_1 - t15;
    const double t96 = FMA(-t95, t90, t89);
    const double t97 = FMA(t95, t94, t93);

    /* articulated inertias, forces, tip to base: crank + rocker + output + coupler + link */
    const double t98 = t15 * t15;
    const double t99 = 0.4471425148343068 * t98;
    const double t100 = t11 * t99;

    /* (no section) */
    const double t101 = -t66;
    const double t102 = v_4 * t66;
    const double t103 = -t65;
    const double t104 = v_1 * t65;
    const double t105 = v_4 * t68;
    const double t106 = v_1 * t67;
    const double t107 = v_4 * t104;
    const double t108 = FMA(v_1, t102, -t107);
    const double t109 = t102 + t104;
    const double t110 = v_4 * t106;
    const double t111 = FMA(v_1, t105, -t110);
    const double t112 = t105 + t106;
    const double t113 = v_2 * t62;
    const double t114 = v_2 * t61;
    const double t115 = t16 * t114;
    const double t116 = FMA(-v_2, t109, t115);
    const double t117 = t108 + t116;
    const double t118 = t114 - t109;
    const double t119 = t16 * t113;
    const double t120 = FMA(v_2, t112, t119);
    const double t121 = t111 - t120;
    const double t122 = t112 + t113;
    const double t123 = v_2 - t16;
    const double t124 = FMA(-t123, t118, t117);
    const double t125 = FMA(t123, t122, t121);

    /* articulated inertias, forces, tip to base: crank + rocker + output + coupler + link */
    const double t126 = t16 * t16;
    const double t127 = 0.10880000000000005 * t126;
    const double t128 = t14 * t127;

    /* elimination of loops: crank + rocker + output + coupler + link */
    const double t129 = t41 * t41;
    const double t130 = t42 * t42;
    const int t131 = t129 < t130;
    const double t132 = t131 ? t130 : t129;
    const int t133 = t79 < t76;
    const double t134 = t133 ? t76 : t79;
    const int t135 = t132 < t134;
    const double t136 = t135 ? t70 : t42;
    const double t137 = t135 ? t42 : t70;
    const double t138 = t135 ? t71 : t41;
    const double t139 = t135 ? t41 : t71;
    const double t140 = t135 ? t34 : t72;
    const double t141 = t135 ? t72 : t34;
    const double t142 = t135 ? t97 : t96;
    const double t143 = t135 ? t96 : t97;
    const double t144 = t138 * t138;
    const double t145 = t136 * t136;
    const int t146 = t144 < t145;
    const double t147 = t146 ? t136 : t138;
    const double t148 = t146 ? t138 : t136;
    const double t149 = t146 ? t137 : t139;
    const double t150 = t146 ? t139 : t137;
    const double t151 = t147 * t147;
    const int t152 = 0.0 < t151;
    const double t153 = t152 ? t147 : 1.0;
    const double t154 = 1.0 / t153;
    const double t155 = t149 * t154;
    const double t156 = FMA(-t148, t155, t150);
    const double t157 = FMA(-t140, t155, t141);
    const double t158 = FMA(-t142, t155, t143);
    const double t159 = t142 * t154;
    const double t160 = t148 * t154;
    const double t161 = t140 * t154;
    const double t162 = t62 * t62;
    const double t163 = t61 * t61;
    const int t164 = t162 < t163;
    const double t165 = t164 ? t101 : t68;
    const double t166 = t164 ? t68 : t101;
    const double t167 = t164 ? t103 : t67;
    const double t168 = t164 ? t67 : t103;
    const double t169 = t164 ? t61 : t62;
    const double t170 = t164 ? t62 : t61;
    const double t171 = t164 ? t125 : t124;
    const double t172 = t164 ? t124 : t125;
    const double t173 = t169 * t169;
    const int t174 = 0.0 < t173;
    const double t175 = t174 ? t169 : 1.0;
    const double t176 = 1.0 / t175;
    const double t177 = t170 * t176;
    const double t178 = FMA(-t165, t177, t166);
    const double t179 = FMA(-t167, t177, t168);
    const double t180 = FMA(-t171, t177, t172);
    const double t181 = t171 * t176;
    const double t182 = t165 * t176;
    const double t183 = t167 * t176;
    const double t184 = t178 * t178;
    const int t185 = t184 < t173;
    const double t186 = t185 ? t184 : t173;
    const int t187 = t173 < t184;
    const double t188 = t187 ? t184 : t173;
    const double t189 = FMA(-1.0000000000000001e-16, t188, t186);
    const int t190 = 0.0 < t184;
    const double t191 = t190 ? t178 : 1.0;
    const double t192 = 1.0 / t191;
    const double t193 = t180 * t192;
    const double t194 = t179 * t192;
    const double t195 = t157 * t157;
    const double t196 = t156 * t156;
    const int t197 = t195 < t196;
    const double t198 = t197 ? t156 : t157;
    const double t199 = t197 ? t157 : t156;
    const double t200 = t198 * t198;
    const double t201 = 1.0000000000000001e-16 * t151;
    const int t202 = t201 < t200;
    const double t203 = t202 ? t198 : 1.0;
    const double t204 = 1.0 / t203;
    const double t205 = t202 ? t204 : 0.0;
    const double t206 = t202 ? 0.0 : 1.0;
    const double t207 = t158 * t205;
    const double t208 = t199 * t205;
    const double t209 = -t207;
    const double t210 = -t208;
    const double t211 = t151 - 1.0000000000000001e-20;
    const double t212 = t197 ? 1.0 : t210;
    const double t213 = t197 ? t210 : 1.0;
    const double t214 = t197 ? 0.0 : t206;
    const double t215 = t197 ? t206 : 0.0;

    /* articulated inertias, forces, tip to base: crank + rocker + output + coupler + link */
    const double t216 = 1.0 - t206;

    /* elimination of loops: crank + rocker + output + coupler + link */
    const double t217 = t197 ? 0.0 : t209;
    const double t218 = t197 ? t209 : 0.0;
    const double t219 = FMA(t217, t194, t193);
    const double t220 = FMA(t219, t182, -t181);
    const double t221 = FMA(-t217, t183, t220);
    const double t222 = FMA(t218, t160, t159);
    const double t223 = FMA(t217, t161, t222);
    const double t224 = -t223;

    /* articulated inertias, forces, tip to base: crank + rocker + output + coupler + link */
    const double t225 = FMA(0.018755184468419506, t221, t69);
    const double t226 = tau_2 - t225;

    /* elimination of loops: crank + rocker + output + coupler + link */
    const double t227 = t212 * t194;
    const double t228 = t214 * t194;
    const double t229 = t212 * t183;
    const double t230 = FMA(t227, t182, -t229);
    const double t231 = t214 * t183;
    const double t232 = FMA(t228, t182, -t231);
    const double t233 = t212 * t161;
    const double t234 = FMA(t213, t160, t233);
    const double t235 = -t234;
    const double t236 = t214 * t161;
    const double t237 = FMA(t215, t160, t236);
    const double t238 = -t237;
    const double t239 = t146 ? t213 : t235;
    const double t240 = t146 ? t235 : t213;
    const double t241 = t146 ? t215 : t238;
    const double t242 = t146 ? t238 : t215;
    const double t243 = t146 ? t218 : t224;
    const double t244 = t146 ? t224 : t218;
    const int t245 = t211 < 1.0;
    const double t246 = t245 ? t211 : 1.0;
    const int t247 = t189 < t246;
    const double t248 = t247 ? t189 : t246;

    /* (no section) */
    const int t249 = 0.0 < t248;
    const double t250 = t249 ? 0.0 : 1.0;
    const int t251 = t250 < 0.5;
    const double t252 = t251 ? 0.0 : (-1.0);
    const double t253 = sqrt(t252);

    /* articulated inertias, forces, tip to base: crank + rocker + output + coupler + link */
    const double t254 = 9.81 * t1;
    const double t255 = FMA(0.09433981132056604, t243, t254);
    const double t256 = 1.8880841139944546 * t1;
    const double t257 = FMA(0.01787726070771993, t243, t256);
    const double t258 = 9.81 * t4;
    const double t259 = FMA(0.23409399821439247, t217, t258);
    const double t260 = v_0 * v_0;
    const double t261 = 0.09433981132056604 * t260;
    const double t262 = FMA(9.81, t2, -t261);
    const double t263 = t11 * t262;
    const double t264 = FMA(t10, t255, -t263);
    const double t265 = t243 + t244;
    const double t266 = v_1 * v_1;
    const double t267 = 0.23409399821439247 * t266;
    const double t268 = FMA(9.81, t5, -t267);
    const double t269 = t14 * t268;
    const double t270 = FMA(t13, t259, -t269);
    const double t271 = 0.6699698831179418 * t5;
    const double t272 = FMA(3.5899004657999125, t4, -t271);
    const double t273 = t217 - t219;
    const double t274 = 0.006807266905487455 * t217;
    const double t275 = FMA(0.07795038071280519, t217, t274);
    const double t276 = t275 + t272;
    const double t277 = 0.004832684494809475 * t265;
    const double t278 = FMA(0.13398315733334282, t265, t277);
    const double t279 = FMA(0.4471425148343068, t264, t278);
    const double t280 = 0.4471425148343068 * t265;
    const double t281 = FMA(t10, t280, -t100);
    const double t282 = FMA(0.09433981132056604, t281, t279);
    const double t283 = t257 + t282;
    const double t284 = tau_3 - t279;
    const double t285 = tau_0 - t283;
    const double t286 = 0.02392500757691743 * t273;
    const double t287 = FMA(0.10880000000000005, t270, t286);
    const double t288 = 0.10880000000000005 * t273;
    const double t289 = FMA(t13, t288, -t128);
    const double t290 = FMA(0.23409399821439247, t289, t287);
    const double t291 = t276 + t290;
    const double t292 = tau_1 - t291;
    const double t293 = tau_4 - t287;
    const double t294 = FMA(0.050938854011451824, t13, 0.023925007576917425);
    const double t295 = t294 + 0.08475764761829264;
    const double t296 = FMA(0.025469427005725912, t13, 0.023925007576917425);
    const double t297 = FMA(0.0843666809657438, t10, 0.1388158418281523);
    const double t298 = 0.01787726070771993 + t297;
    const double t299 = FMA(0.0421833404828719, t10, 0.1388158418281523);
    const double t300 = t239 * t298;
    const double t301 = FMA(t240, t299, t300);
    const double t302 = t241 * t298;
    const double t303 = FMA(t242, t299, t302);
    const double t304 = t212 * t295;
    const double t305 = FMA(-t227, t296, t304);
    const double t306 = t214 * t295;
    const double t307 = FMA(-t228, t296, t306);
    const double t308 = t214 * t307;
    const double t309 = 0.01875518446841951 * t230;
    const double t310 = t239 * t299;
    const double t311 = FMA(0.1388158418281523, t240, t310);
    const double t312 = t241 * t299;
    const double t313 = FMA(0.1388158418281523, t242, t312);
    const double t314 = FMA(t242, t313, t308);
    const double t315 = t212 * t296;
    const double t316 = FMA(-0.023925007576917425, t227, t315);
    const double t317 = t214 * t296;
    const double t318 = FMA(-0.023925007576917425, t228, t317);
    const double t319 = FMA(-t228, t318, t314);
    const double t320 = 0.01875518446841951 * t232;
    const double t321 = FMA(t232, t320, t319);
    const double t322 = FMA(t241, t303, t321);
    const double t323 = t322 + t216;
    const double t324 = t212 * t305;
    const double t325 = FMA(t240, t311, t324);
    const double t326 = FMA(-t227, t316, t325);
    const double t327 = FMA(t230, t309, t326);
    const double t328 = FMA(t239, t301, t327);
    const double t329 = t214 * t305;
    const double t330 = FMA(t242, t311, t329);
    const double t331 = FMA(-t228, t316, t330);
    const double t332 = FMA(t232, t309, t331);
    const double t333 = FMA(t241, t301, t332);
    const double t334 = 1.0 / t328;
    const double t335 = t333 * t334;
    const double t336 = FMA(-t333, t335, t323);
    const double t337 = 1.0 / t336;
    const double t338 = t212 * t292;
    const double t339 = FMA(t240, t284, t338);
    const double t340 = FMA(-t227, t293, t339);
    const double t341 = FMA(t230, t226, t340);
    const double t342 = FMA(t239, t285, t341);
    const double t343 = t214 * t292;
    const double t344 = FMA(t242, t284, t343);
    const double t345 = FMA(-t228, t293, t344);
    const double t346 = FMA(t232, t226, t345);
    const double t347 = FMA(t241, t285, t346);
    const double t348 = FMA(-t335, t342, t347);
    const double t349 = t334 * t342;
    const double t350 = t337 * t348;
    const double t351 = FMA(-t335, t350, t349);

    /* accelerations, base to tip: crank + rocker + output + coupler + link */
    const double t352 = FMA(t239, t351, t243);
    const double t353 = FMA(t241, t350, t352);
    const double t354 = FMA(t212, t351, t217);
    const double t355 = FMA(t214, t350, t354);
    const double t356 = FMA(t230, t351, t221);
    const double t357 = FMA(t232, t350, t356);
    const double t358 = FMA(t240, t351, t244);
    const double t359 = FMA(t227, t351, t219);
    const double t360 = FMA(t242, t350, t358);
    const double t361 = FMA(t228, t350, t359);

    /* (no section) */
    const double t362 = t353 + t253;
    const double t363 = t355 + t253;
    const double t364 = t357 + t253;
    const double t365 = t360 + t253;
    const double t366 = t253 - t361;

    /* results */
    a[0] = t362;
    a[1] = t363;
    a[2] = t364;
    a[3] = t365;
    a[4] = t366;
}

void closed_forward_dynamics_batch(size_t n, const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict a)
{
    for (size_t i = 0; i < n; ++i)
        closed_forward_dynamics(q + i * 5, v + i * 5, tau + i * 5, a + i * 5);
}

#ifdef __cplusplus
}
#undef restrict
#endif

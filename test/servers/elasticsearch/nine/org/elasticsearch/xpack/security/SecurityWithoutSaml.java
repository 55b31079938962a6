package org.elasticsearch.xpack.security;

import java.util.List;
import org.elasticsearch.common.settings.Settings;

/** Security but for the SAML actions, whose libraries are not published. */
public class SecurityWithoutSaml extends Security {
    public SecurityWithoutSaml(Settings settings) {
        super(settings);
    }

    @Override
    public List<ActionHandler> getActions() {
        return super.getActions().stream().filter(each -> each.getAction().name().contains("saml") == false).toList();
    }
}
